! SPDX-License-Identifier: BSD-3-Clause
! The tests of forms.inc, for each element type a module.
module routines_s
  use, intrinsic :: iso_c_binding
  use expect
  use batchqr, xgeqrf => batch_sgeqrf, xgeqrf_strided => batch_sgeqrf_strided, xorgqr => batch_sorgqr, &
    xormqr => batch_sormqr, xqr => batch_sqr, xgeqr_r => batch_sgeqr_r, xgels => batch_sgels
#define LETTER BATCHQR_S
#define T real(c_float)
#define REAL_T real(c_float)
#define ONE 1.0_c_float
#define ANY_T(x, y) (x + 0 * y)
#define CONJUGATE(x) (x)
#include "forms.inc"
end module

module routines_d
  use, intrinsic :: iso_c_binding
  use expect
  use batchqr, xgeqrf => batch_dgeqrf, xgeqrf_strided => batch_dgeqrf_strided, xorgqr => batch_dorgqr, &
    xormqr => batch_dormqr, xqr => batch_dqr, xgeqr_r => batch_dgeqr_r, xgels => batch_dgels
#undef LETTER
#undef T
#undef REAL_T
#undef ONE
#define LETTER BATCHQR_D
#define T real(c_double)
#define REAL_T real(c_double)
#define ONE 1.0_c_double
#include "forms.inc"
end module

module routines_c
  use, intrinsic :: iso_c_binding
  use expect
  use batchqr, xgeqrf => batch_cgeqrf, xgeqrf_strided => batch_cgeqrf_strided, xorgqr => batch_cungqr, &
    xormqr => batch_cunmqr, xqr => batch_cqr, xgeqr_r => batch_cgeqr_r, xgels => batch_cgels
#undef LETTER
#undef T
#undef REAL_T
#undef ONE
#undef ANY_T
#undef CONJUGATE
#define LETTER BATCHQR_C
#define T complex(c_float_complex)
#define REAL_T real(c_float)
#define ONE 1.0_c_float
#define ANY_T(x, y) cmplx(x, y, wp)
#define CONJUGATE(x) conjg(x)
#include "forms.inc"
end module

module routines_z
  use, intrinsic :: iso_c_binding
  use expect
  use batchqr, xgeqrf => batch_zgeqrf, xgeqrf_strided => batch_zgeqrf_strided, xorgqr => batch_zungqr, &
    xormqr => batch_zunmqr, xqr => batch_zqr, xgeqr_r => batch_zgeqr_r, xgels => batch_zgels
#undef LETTER
#undef T
#undef REAL_T
#undef ONE
#define LETTER BATCHQR_Z
#define T complex(c_double_complex)
#define REAL_T real(c_double)
#define ONE 1.0_c_double
#include "forms.inc"
end module
