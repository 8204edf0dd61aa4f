"""Numbers in single precision as people write them: 0.15, where a double would print 0.15000000596046448."""

import numpy as np

__all__ = ["decimal", "decimals"]


def decimals(values: np.ndarray, *, by_value: bool = False) -> np.ndarray:
    """Doubles that print as the shortest decimals of single precision, and are the same numbers when read as such.

    Numbers of an array of doubles stay as they are; with `by_value` only those that no float32 is equal to. Needs
    orjson.
    """
    if values.dtype != np.float32 and not by_value:
        return values.astype(np.float64)
    from orjson import OPT_SERIALIZE_NUMPY, dumps, loads

    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    known = np.isfinite(single) & (single == values)  # JSON has no NaN
    plain = np.ascontiguousarray(np.where(known, single, np.float32(0)))
    made = np.array(loads(dumps(plain, option=OPT_SERIALIZE_NUMPY)), np.float64).reshape(values.shape)
    return made if known.all() else np.where(known, made, values)


def decimal(number: float) -> float:
    """The same for one number, if it is one in single precision."""
    with np.errstate(over="ignore"):
        single = np.float32(number)
    return float(str(single)) if float(single) == number else float(number)
