"""Link adaptation: spectral efficiency by signal-to-noise ratio, block errors, repetitions."""
