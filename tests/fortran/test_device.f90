! SPDX-License-Identifier: BSD-3-Clause
!> Operands on the GPU: thin QR of members in memory of cudaMalloc.
program test_device
  use, intrinsic :: iso_c_binding
  use batchqr
  implicit none
  interface
    function cuda_malloc(address, bytes) bind(c, name='cudaMalloc') result(error)
      import
      type(c_ptr), intent(out) :: address
      integer(c_size_t), value :: bytes
      integer(c_int) :: error
    end function
    function cuda_memcpy(to, from, bytes, kind) bind(c, name='cudaMemcpy') result(error)
      import
      type(c_ptr), value :: to, from
      integer(c_size_t), value :: bytes
      integer(c_int), value :: kind
      integer(c_int) :: error
    end function
  end interface
  integer(c_int), parameter :: either_way = 4 ! cudaMemcpyDefault
  integer(c_int), parameter :: m = 20, n = 6
  integer(c_int64_t), parameter :: count = 50
  real(c_double), target :: a(m, n, count), q(m, n, count), r(n, n, count)
  type(c_ptr) :: handle, device_a, device_r
  type(batchqr_batch) :: batch
  real(c_double) :: worst
  integer :: k

  if (batchqr_create(handle, batchqr_options(backend=BATCHQR_BACKEND_CUDA)) /= BATCHQR_SUCCESS) then
    print '(a)', batchqr_error_message(c_null_ptr)
    stop 77, quiet=.true. ! skipped
  end if
  call random_number(a)
  batch = batchqr_batch_packed(BATCHQR_QR, BATCHQR_D, m, n, 0, count)
  call expect(cuda_malloc(device_a, c_sizeof(a)), 'cudaMalloc')
  call expect(cuda_malloc(device_r, c_sizeof(r)), 'cudaMalloc')
  call expect(cuda_memcpy(device_a, c_loc(a), c_sizeof(a), either_way), 'cudaMemcpy')
  call expect(batch_qr(handle, batch, device_a, device_a, device_r, c_null_ptr), batchqr_error_message(handle))
  call expect(cuda_memcpy(c_loc(q), device_a, c_sizeof(q), either_way), 'cudaMemcpy')
  call expect(cuda_memcpy(c_loc(r), device_r, c_sizeof(r), either_way), 'cudaMemcpy')
  call batchqr_destroy(handle)
  worst = maxval([(maxval(abs(a(:, :, k) - matmul(q(:, :, k), r(:, :, k)))), k = 1, int(count))])
  print '(a, es8.1)', 'largest entry of |A - QR|:', worst
  if (worst > 1e-13_c_double) error stop 'too large'

contains

  subroutine expect(status, what)
    integer(c_int), intent(in) :: status
    character(*), intent(in) :: what
    if (status /= 0) error stop what
  end subroutine
end program
