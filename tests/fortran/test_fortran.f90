! SPDX-License-Identifier: BSD-3-Clause
!> The Fortran module: handles, plans and texts, and the routines in all their forms for the four types.
program test_fortran
  use, intrinsic :: iso_c_binding
  use batchqr
  use expect
  use routines_s, only: test_s => test_routines
  use routines_d, only: test_d => test_routines
  use routines_c, only: test_c => test_routines
  use routines_z, only: test_z => test_routines
  implicit none
  type(c_ptr) :: handle

  call random_init(.true., .true.)
  call done(c_null_ptr, batchqr_create(handle, batchqr_options(backend=BATCHQR_BACKEND_CPU)), 'create')
  call test_handle
  call test_plan
  call test_sizes
  call test_s(handle)
  call test_d(handle)
  call test_c(handle)
  call test_z(handle)
  call batchqr_destroy(handle)
  print '(i0, a, i0, a)', passed, ' passed, ', failed, ' failed'
  if (failed > 0) error stop 1

contains

  subroutine test_handle
    character(:), allocatable :: message
    type(c_ptr) :: none
    integer(c_int) :: status
    call check(batchqr_version() == BATCHQR_HEADER_VERSION, 'version')
    call check(batchqr_get_backend(handle) == BATCHQR_BACKEND_CPU, 'backend')
    call check(index(batchqr_describe(handle), 'CPU') > 0, 'description')
    call check(batchqr_status_string(BATCHQR_UNSUPPORTED) == 'BATCHQR_UNSUPPORTED', 'status text')
    call check(batchqr_create(none, batchqr_options(threads=-1)) == BATCHQR_INVALID_ARGUMENT, 'wrong option')
    call check(index(batchqr_error_message(c_null_ptr), 'options.threads = -1') > 0, 'why there is no handle')
    call check(batchqr_set_compute(handle, 99) == BATCHQR_INVALID_ARGUMENT, 'wrong mode')
    call check(index(batchqr_error_message(handle), 'compute = 99') > 0, 'error message')
    status = batchqr_check_tuning_file('/there is/no such file  ', message)
    call check(status == BATCHQR_TUNING_ERROR .and. index(message, '/there is/no such file') > 0, 'tuning file')
    call done(handle, batchqr_set_compute(handle, BATCHQR_COMPUTE_NATIVE), 'set_compute')
    call done(handle, batchqr_set_stream(handle, c_null_ptr), 'set_stream')
    call done(handle, batchqr_set_workspace(handle, c_null_ptr, 0_c_size_t), 'set_workspace')
  end subroutine

  subroutine test_plan
    real(c_double), target :: a(6, 3, 4), tau(3, 4), a2(6, 3, 4), tau2(3, 4)
    type(batchqr_batch) :: batch
    type(batchqr_operands) :: operands
    type(c_ptr) :: plan
    integer(c_size_t) :: bytes
    call random_number(a)
    a2 = a
    batch = batchqr_batch_packed(BATCHQR_GEQRF, BATCHQR_D, 6, 3, 0, 4_c_int64_t)
    call done(handle, batchqr_plan_create(handle, BATCHQR_GEQRF, batch, plan), 'plan_create')
    call check(index(batchqr_plan_describe(plan), 'geqrf 4 x (6x3) d') == 1, 'description of a plan')
    call check(batchqr_plan_launches(plan) > 0, 'launches')
    call done(handle, batchqr_workspace_size(handle, BATCHQR_GEQRF, batch, bytes), 'workspace_size')
    call check(bytes == batchqr_plan_workspace(plan), 'workspace')
    operands%a = c_loc(a)
    operands%tau = c_loc(tau)
    block
      character, target, allocatable :: space(:)
      allocate(space(bytes + 256))
      call done(handle, batchqr_plan_execute(handle, plan, operands, aligned(c_loc(space)), bytes), 'plan_execute')
    end block
    call batchqr_plan_destroy(plan)
    call done(handle, batch_geqrf(handle, batch, a2, tau2), 'geqrf')
    call check(all(a == a2) .and. all(tau == tau2), 'a plan does what the routine does')
  end subroutine

  !> The next address that 256 divides.
  function aligned(address) result(next)
    type(c_ptr), intent(in) :: address
    type(c_ptr) :: next
    integer(c_intptr_t) :: number
    number = transfer(address, number)
    next = transfer((number + 255) / 256 * 256, next)
  end function

  !> Members of sizes of their own: R of a 5 x 3 and of a 2 x 2 one.
  subroutine test_sizes
    integer(c_int), target :: rows(2) = [5, 2], columns(2) = [3, 2]
    real(c_double) :: a(5 * 3 * 2), first(5 * 3), r(3 * 3 * 2), r_first(3 * 3)
    type(batchqr_batch) :: batch
    batch%type = BATCHQR_D
    batch%sizes = BATCHQR_HOST_SIZES
    batch%count = 2
    batch%m_array = c_loc(rows)
    batch%n_array = c_loc(columns)
    batch%a = batchqr_storage(ld=5, stride=5 * 3)
    batch%r = batchqr_storage(ld=3, stride=3 * 3)
    call random_number(a)
    first = a(:5 * 3)
    call done(handle, batch_geqr_r(handle, batch, a, r), 'geqr_r of different sizes')
    call done(handle, batch_dgeqr_r_strided(handle, 5, 3, first, 5, 15_c_int64_t, r_first, 3, 9_c_int64_t, &
      1_c_int64_t), 'geqr_r of one size')
    call check(all(r(:9) == r_first), 'geqr_r of different sizes, results')
  end subroutine
end program
