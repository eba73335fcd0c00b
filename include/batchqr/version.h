/* SPDX-License-Identifier: BSD-3-Clause */
/** @file version.h
 * The one source of the version: the build reads it from here. */
#ifndef BATCHQR_VERSION_H
#define BATCHQR_VERSION_H

#define BATCHQR_VERSION_MAJOR 0
#define BATCHQR_VERSION_MINOR 2
#define BATCHQR_VERSION_PATCH 0
/** For comparisons: 10000 * major + 100 * minor + patch. */
#define BATCHQR_VERSION (10000 * BATCHQR_VERSION_MAJOR + 100 * BATCHQR_VERSION_MINOR + BATCHQR_VERSION_PATCH)

#endif
