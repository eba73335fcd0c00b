#pragma once
namespace bqr { template <class T, int B> size_t back_scratch_bytes(int) { return 0; } }
