! SPDX-License-Identifier: BSD-3-Clause
!> Counts what is as it should be and what is not.
module expect
  use, intrinsic :: iso_c_binding
  use batchqr
  implicit none
  integer :: passed = 0, failed = 0

contains

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) then
      passed = passed + 1
    else
      failed = failed + 1
      print '(2a)', 'FAILED: ', what
    end if
  end subroutine

  !> A call that must have succeeded.
  subroutine done(handle, status, what)
    type(c_ptr), intent(in) :: handle
    integer(c_int), intent(in) :: status
    character(*), intent(in) :: what
    call check(status == BATCHQR_SUCCESS, what // ': ' // batchqr_status_string(status) // ' ' // &
      batchqr_error_message(handle))
  end subroutine
end module
