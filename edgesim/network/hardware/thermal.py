"""Temperature of a processor: one thermal resistance and one capacity, in closed form.

    C dT/dt = P - (T - T_amb) / R

With constant power T approaches T_amb + R P with the time constant R C. At the limit the processor
is throttled to a lower clock, and set free again when it is cooler by the hysteresis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Thermal:
    """The heat path of one processor.

    Args:
        resistance_k_per_w: R, from the processor to the air.
        capacity_j_per_k: C, of what is heated.
        ambient_c: T_amb, degrees Celsius; also the temperature at the start.
        limit_c: temperature at which the processor is throttled.
        hysteresis_k: how much cooler it is when it is set free.
        throttled_hz: highest clock while it is throttled.
    """

    resistance_k_per_w: float
    capacity_j_per_k: float
    ambient_c: float
    limit_c: float
    hysteresis_k: float
    throttled_hz: float

    def after(self, temperature_c: float, power_w: float, seconds: float) -> float:
        """Temperature after some time at constant power, degrees Celsius.

        Example:
            >>> round(Thermal(10, 5, 25, 75, 5, 1e9).after(25.0, 6.0, 50.0), 3)
            62.927
        """
        steady_c = self.ambient_c + self.resistance_k_per_w * power_w
        time_constant_s = self.resistance_k_per_w * self.capacity_j_per_k
        return steady_c + (temperature_c - steady_c) * math.exp(-seconds / time_constant_s)

    def seconds_until_it_turns(
        self, temperature_c: float, power_w: float, throttled: bool
    ) -> float:
        """Time at constant power until it is throttled, or set free, s; inf: never.

        From T_amb to the limit: -R C ln(1 - (T_max - T_amb) / (R P)).
        """
        steady_c = self.ambient_c + self.resistance_k_per_w * power_w
        target_c = self.turns_at_c(throttled)
        sign = -1.0 if throttled else 1.0
        if sign * (temperature_c - target_c) >= 0.0:
            return 0.0
        if sign * (steady_c - target_c) <= 0.0:
            return math.inf
        ratio = (temperature_c - steady_c) / (target_c - steady_c)
        return self.resistance_k_per_w * self.capacity_j_per_k * math.log(ratio)

    def turns_at_c(self, throttled: bool) -> float:
        """Temperature at which it is throttled, or set free if it is, degrees Celsius."""
        return self.limit_c - self.hysteresis_k if throttled else self.limit_c
