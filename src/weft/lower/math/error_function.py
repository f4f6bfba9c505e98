"""erf: a polynomial near zero, and one for the eighth root of 1 - erf beyond."""

from __future__ import annotations

from weft.ir import Expr, select
from weft.lower.math.expansions import Error, expansion
from weft.lower.math.kit import Coefficients, Kit
from weft.support.dtypes import f32, f64

# erf(x) / x - 1 in x^2 for |x| <= 1.2, relative error of erf 2^-26.1 and 2^-56.3
ERF: Coefficients = {
    f32: (0.12837915, -0.37612537, 0.11282689, -0.026820451, 0.00513176, -0.0007565526, 6.535459e-05),
    f64: (
        0.1283791670955126, -0.3761263890318408, 0.11283791670969599, -0.02686617064764803, 0.005223977648338387,
        -0.0008548328273803651, 0.00012055377291667943, -1.4926717600585774e-05, 1.6480046552504253e-06,
        -1.657826384929377e-07, 1.6573841137335387e-08, -2.238343497183333e-09, 4.712034068240021e-10,
        -8.947072097822611e-11, 8.47392920691019e-12,
    ),
}  # fmt: skip

# the eighth root of 1 - erf(x) from 1.2 on, in x - 2.5 up to 3.95 and in x - 3.5 up to 5.95; error 2^-27.7 and 2^-57.5
ROOT: Coefficients = {
    f32: (0.3768714, -0.25215527, 0.039899997, 0.010415099, -0.0037874565, -0.00014542883, 0.00016878216),
    f64: (
        0.1713486901015019, -0.1556295808278597, 0.04996976837569177, -0.0027025331940631983, -0.002310667284672049,
        0.0005140361893714585, 2.269446067431776e-05, -2.1362001600211168e-05, 1.7114186568837624e-06,
        4.084794433705579e-07, -7.643611040627563e-08, -2.9447926447907e-09, 1.8120093117770431e-09,
        -1.178795679878211e-10, -7.072887385820776e-11, -1.0036862768463988e-11, -1.8233257573284697e-12,
        -1.6406866145004957e-13,
    ),
}  # fmt: skip


@expansion("erf", f32=Error(1.6, 1.8), f64=Error(1.6, 1.7))
def erf(kit: Kit, x: Expr) -> Expr:
    """Returns the error function.

    The eighth root of 1 - erf is nearly a parabola, so a short polynomial and three squarings do without an
    exponential; the error that squaring multiplies by 8 has shrunk to 1 - erf(1.2) = 0.09 of the result's.
    """
    a = kit.at_most(kit.abs(x), kit.pick(3.95, 5.95))
    near = kit.fma(kit.horner(a * a, ERF), a, a)
    root = kit.horner(a - kit.pick(2.5, 3.5), ROOT)
    power4 = (root * root) * (root * root)
    far = kit.fma(-power4, power4, 1.0)
    return kit.with_sign(select(a > 1.2, far, near), kit.sign(x))
