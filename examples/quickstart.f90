! SPDX-License-Identifier: BSD-3-Clause
! Factors a thousand matrices and prints the largest error.
program quickstart
  use, intrinsic :: iso_c_binding
  use batchqr
  implicit none
  integer(c_int), parameter :: m = 6, n = 4
  integer(c_int64_t), parameter :: count = 1000
  real(c_double) :: a(m, n, count), q(m, n, count), r(n, n, count), worst
  type(batchqr_batch) :: batch
  type(c_ptr) :: handle
  integer :: k

  call random_number(a)
  q = a ! Q takes A's place
  batch = batchqr_batch_packed(BATCHQR_QR, BATCHQR_D, m, n, 0, count)
  if (batchqr_create(handle, batchqr_options(backend=BATCHQR_BACKEND_CPU)) /= BATCHQR_SUCCESS) &
    error stop batchqr_error_message(c_null_ptr)
  if (batch_qr(handle, batch, q, q, r) /= BATCHQR_SUCCESS) error stop batchqr_error_message(handle)
  call batchqr_destroy(handle)

  worst = maxval([(maxval(abs(a(:, :, k) - matmul(q(:, :, k), r(:, :, k)))), k = 1, int(count))])
  print '(a, es8.1)', 'largest entry of |A - QR|:', worst
  if (worst > 1e-14_c_double) error stop 'too large'
end program
