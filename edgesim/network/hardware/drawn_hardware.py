"""What the devices of a scenario are made of, drawn by class."""

from __future__ import annotations

import math
from collections.abc import Sequence

from edgesim.network.device import Fleet, draw
from edgesim.network.hardware.background_load import BackgroundLoad
from edgesim.network.hardware.battery import Battery, Charging
from edgesim.network.hardware.device_hardware import DeviceHardware
from edgesim.network.hardware.modem import NO_MODEM, Modem
from edgesim.network.hardware.thermal import Thermal
from edgesim.scenario.hardware.device_schema import DeviceClass
from edgesim.scenario.hardware.power_schema import BatterySection, RadioSection
from edgesim.scenario.hardware.processor_schema import BackgroundSection, ThermalSection
from fl.contracts import Streams


def draw_hardware(
    classes: Sequence[DeviceClass], fleet: Fleet, streams: Streams
) -> dict[int, DeviceHardware]:
    """Device -> its hardware, of devices with heat, other load, a battery or a modem.

    Each (class, quantity) has its own stream, as in `edgesim.network.device.draw_fleet`.
    """
    hardware, first = {}, 0
    for index, cls in enumerate(classes):
        if cls.has_state:
            batteries = _batteries(cls.battery, cls.count, index, streams)
            for i in range(cls.count):
                k = first + i
                hardware[k] = DeviceHardware(
                    capacitance=float(fleet.capacitance[k]),
                    static_power_w=float(fleet.static_power_w[k]),
                    idle_power_w=float(fleet.idle_power_w[k]),
                    receive_power_w=float(fleet.receive_power_w[k]),
                    modem=_modem(cls.radio),
                    thermal=_thermal(cls.cpu.thermal),
                    load=_load(cls.cpu.background, streams, k),
                    battery=batteries[i],
                )
        first += cls.count
    return hardware


def _modem(section: RadioSection | None) -> Modem:
    return NO_MODEM if section is None else Modem(**dict(section))


def _thermal(section: ThermalSection | None) -> Thermal | None:
    return None if section is None else Thermal(**dict(section))


def _load(section: BackgroundSection | None, streams: Streams, k: int) -> BackgroundLoad | None:
    if section is None:
        return None
    return BackgroundLoad(**dict(section), streams=streams, device=k)


def _batteries(
    section: BatterySection | None, count: int, index: int, streams: Streams
) -> Sequence[Battery | None]:
    if section is None:
        return [None] * count

    def drawn(name: str, quantity: object) -> list[float]:
        stream = streams.stream(f"devices/{index}/battery/{name}")
        return draw(quantity, count, stream).tolist()  # type: ignore[arg-type]

    charging = section.charging
    charged_w = drawn("charging", charging.power_w) if charging else [0.0] * count
    period_s = charging.period_s if charging else None
    return [
        Battery(
            capacity_j,
            start,
            section.resume,
            Charging(
                power_w,
                math.inf if period_s is None else period_s,
                charging.from_s if charging else 0.0,
                charging.lasts_s if charging and charging.lasts_s is not None else math.inf,
            ),
        )
        for capacity_j, start, power_w in zip(
            drawn("capacity", section.capacity_j),
            drawn("start", section.start),
            charged_w,
            strict=True,
        )
    ]
