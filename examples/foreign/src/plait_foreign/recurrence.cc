// y[i] = decay[i] * y[i - 1] + x[i] along the last axis; y[i + 1] if `reverse`.
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

template <ffi::DataType T>
static ffi::Error Recur(ffi::Buffer<T> x, ffi::Buffer<T> decay, ffi::ResultBuffer<T> y,
                        bool reverse) {
  const int64_t count = x.element_count();
  const int64_t n = count ? x.dimensions().back() : 1;
  for (int64_t row = 0; row < count; row += n) {
    ffi::NativeType<T> last = 0;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = row + (reverse ? n - 1 - k : k);
      last = decay.typed_data()[i] * last + x.typed_data()[i];
      y->typed_data()[i] = last;
    }
  }
  return ffi::Error::Success();
}

template <ffi::DataType T>
static auto Signature() {
  return ffi::Ffi::Bind()
      .template Arg<ffi::Buffer<T>>()
      .template Arg<ffi::Buffer<T>>()
      .template Ret<ffi::Buffer<T>>()
      .template Attr<bool>("reverse");
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(plait_foreign_recur_float32, Recur<ffi::F32>,
                              Signature<ffi::F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(plait_foreign_recur_float64, Recur<ffi::F64>,
                              Signature<ffi::F64>());
