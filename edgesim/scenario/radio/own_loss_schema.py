"""Path losses from a file or from code of the user's own, and their short forms in a scenario."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel
from pydantic_core import core_schema

from edgesim.scenario.fields import Word, WordList
from edgesim.scenario.section import OURS, Section, key, refuse

EXAMPLE = "{path_loss: {model: constant, loss: 100 dB}}"
SHORT_KEYS = {  # of the short form {trace: rates.csv}: the key in full
    "network.channel.trace": "network.channel.path_loss.file",
    "network.channel.end": "network.channel.path_loss.end",
}


class CodePathLoss(Section):
    model: Literal["code"] = key("code: a function of your own, or of an installed package", "code")
    code: Annotated[str, Word(looks="./file.py:function")] = key(
        "called with the devices and the random streams, for each base station; gives the path "
        "loss of every device in dB, or, of one station, an object with loss_db(time_s) and "
        "next_change_s(time_s)",
        "./radio.py:free_space",
    )
    reads: Annotated[tuple[str, ...], WordList("files", "losses.npy")] = key(
        "files that the code reads, relative to the scenario: a run is another one where they "
        "change, and small ones are copied into its folder as the code is",
        ["losses.npy"],
        (),
        f"{OURS}: it reads none",
        written=False,
    )


class TracePathLoss(Section):
    model: Literal["trace"] = key("trace: rates or path losses that were measured", "trace")
    file: Annotated[str, Word(looks="the path of a CSV file")] = key(
        "CSV whose first line has units in brackets: time [s], then a column [Mbit/s] or [dB] for "
        "every device; a value holds until the next line",
        "rates.csv",
    )
    end: Annotated[str, Word(("repeat", "hold"))] = key(
        "behind the last line: repeat starts again, after as long as the line before lasted; hold "
        "keeps the last values",
        "hold",
        "repeat",
        f"{OURS}: runs may be longer than what was measured",
    )


class ChannelForms:
    """In the type of the section channel: its short forms.

    ``channel: ./radio.py:free_space`` is a path loss by code, ``channel: {trace: rates.csv}`` one
    from a file.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(expanded, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        word = {"type": "string", "minLength": 1}
        trace = {
            "type": "object",
            "properties": {"trace": word, "end": {"enum": ["repeat", "hold"]}},
            "required": ["trace"],
        }
        return {"anyOf": [word, trace, handler(schema)]}


def expanded(given: object) -> object:
    """The section channel in full."""
    if isinstance(given, str) and given.strip():
        return {"path_loss": {"model": "code", "code": given}}
    if isinstance(given, dict) and "trace" in given:
        if "path_loss" in given:
            raise refuse(given["trace"], " beside path_loss; keep one of the two", "trace")
        rest = {name: value for name, value in given.items() if name not in ("trace", "end")}
        loss = {"model": "trace", "file": given["trace"]}
        loss |= {"end": given["end"]} if "end" in given else {}
        return {**rest, "path_loss": loss}
    if not isinstance(given, dict | BaseModel):
        raise refuse(given, f"; write {EXAMPLE}, ./file.py:function or {{trace: rates.csv}}")
    return given


def written_key(tree: Any, keys: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The key that was written, where a short form of the channel stands for a full one.

    Args:
        tree: the scenario as it was written.
        keys: path of a key of the full form.
    """
    network = tree.get("network") if isinstance(tree, dict) else None
    channel = network.get("channel") if isinstance(network, dict) else None
    if keys[:3] != ("network", "channel", "path_loss"):
        return keys
    if isinstance(channel, str):
        return keys[:2]
    if isinstance(channel, dict) and "trace" in channel:
        return (*keys[:2], "end" if keys[3:4] == ("end",) else "trace")
    return keys
