"""Selection rules that remember what devices did, under any method that leaves the choice open."""
