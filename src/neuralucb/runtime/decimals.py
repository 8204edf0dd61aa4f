"""Numbers in single precision as people write them: 0.15, where a double would print 0.15000000596046448."""

import numpy as np

__all__ = ["decimal", "decimals"]


def decimals(values: np.ndarray) -> np.ndarray:
    """Doubles that print as the shortest decimals of single precision, and are the same numbers when read as such.

    Only for an array of float32; others are returned as doubles, unchanged. Needs orjson.
    """
    if values.dtype != np.float32:
        return values.astype(np.float64)
    from orjson import OPT_SERIALIZE_NUMPY, dumps, loads

    finite = np.isfinite(values)
    whole = finite.all()  # JSON has no NaN
    plain = np.ascontiguousarray(values if whole else np.where(finite, values, np.float32(0)))
    made = np.array(loads(dumps(plain, option=OPT_SERIALIZE_NUMPY)), np.float64).reshape(values.shape)
    return made if whole else np.where(finite, made, values)


def decimal(number: float) -> float:
    """The same for one number, if it is one in single precision."""
    with np.errstate(over="ignore"):
        single = np.float32(number)
    return float(str(single)) if float(single) == number else float(number)
