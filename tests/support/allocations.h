/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that the program and the library in it ask for, of the host and of the device: the linker's --wrap
 * leads it here, where it is counted and can run out. What shared libraries ask for is not seen. */
#ifndef BQR_TESTS_ALLOCATIONS_H
#define BQR_TESTS_ALLOCATIONS_H

/* How many there were so far. */
int allocations_count(void);

/* Lets so many succeed and the next one fail; negative: none fails. */
void allocations_fail_after(int count);
/* How many have failed since that was last asked for. */
int allocations_failed(void);

#endif
