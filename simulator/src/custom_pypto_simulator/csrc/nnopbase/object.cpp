// aclCreate*, aclDestroy*, and the functions that read these objects.
#include <algorithm>
#include <cstring>

#include "pool.h"

namespace custom_pypto_simulator {
namespace {

// Leaked: torch_npu's queue may destroy objects after static destructors have run.
#define CUSTOM_PYPTO_SIM_POOL(Object, function, kind) \
  Pool<Object>& function() {                          \
    static auto* instance = new Pool<Object>(kind);   \
    return *instance;                                 \
  }

CUSTOM_PYPTO_SIM_POOL(aclTensor, tensors, "tensor")
CUSTOM_PYPTO_SIM_POOL(aclScalar, scalars, "scalar")
CUSTOM_PYPTO_SIM_POOL(aclIntArray, int_arrays, "int array")
CUSTOM_PYPTO_SIM_POOL(aclFloatArray, float_arrays, "float array")
CUSTOM_PYPTO_SIM_POOL(aclBoolArray, bool_arrays, "bool array")
CUSTOM_PYPTO_SIM_POOL(aclTensorList, tensor_lists, "tensor list")
CUSTOM_PYPTO_SIM_POOL(aclScalarList, scalar_lists, "scalar list")

#undef CUSTOM_PYPTO_SIM_POOL

template <class Object, class Element>
Object* create_list(Pool<Object>& pool, const char* function, const Element* values, uint64_t n) {
  Object* object = pool.create(function);
  if (object != nullptr) object->values.assign(values, values + n);
  return object;
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_EXPORT size_t custom_pypto_sim_item_size(aclDataType dtype) {
  switch (dtype) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
      return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
      return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
      return 4;
    case ACL_DOUBLE:
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_COMPLEX64:
      return 8;
    case ACL_COMPLEX128:
      return 16;
    default:
      return 0;
  }
}

CUSTOM_PYPTO_SIM_EXPORT size_t aclDataTypeSize(aclDataType dtype) {
  return custom_pypto_sim_item_size(dtype);
}

CUSTOM_PYPTO_SIM_EXPORT aclTensor* aclCreateTensor(const int64_t* shape, uint64_t dims,
                                                   aclDataType dtype, const int64_t* strides,
                                                   int64_t offset, aclFormat format,
                                                   const int64_t* storage_shape,
                                                   uint64_t storage_dims, void* data) {
  aclTensor* tensor = sim::tensors().create("aclCreateTensor");
  if (tensor == nullptr) return nullptr;
  tensor->shape.assign(shape, shape + dims);
  tensor->storage_shape.assign(storage_shape, storage_shape + storage_dims);
  if (strides != nullptr) {
    tensor->strides.assign(strides, strides + dims);
  } else {
    tensor->strides.resize(dims);
    if (dims != 0) tensor->strides[dims - 1] = 1;
    for (uint64_t i = dims; i-- > 1;) {
      tensor->strides[i - 1] = tensor->strides[i] * tensor->shape[i];
    }
  }
  tensor->offset = offset;
  tensor->dtype = dtype;
  tensor->format = format;
  tensor->data = data;
  return tensor;
}

CUSTOM_PYPTO_SIM_EXPORT aclScalar* aclCreateScalar(void* value, aclDataType dtype) {
  aclScalar* scalar = sim::scalars().create("aclCreateScalar");
  if (scalar == nullptr) return nullptr;
  scalar->dtype = dtype;
  std::memset(scalar->value, 0, sizeof scalar->value);
  std::memcpy(scalar->value, value, custom_pypto_sim_item_size(dtype));
  return scalar;
}

CUSTOM_PYPTO_SIM_EXPORT aclIntArray* aclCreateIntArray(const int64_t* values, uint64_t n) {
  return sim::create_list(sim::int_arrays(), "aclCreateIntArray", values, n);
}

CUSTOM_PYPTO_SIM_EXPORT aclFloatArray* aclCreateFloatArray(const float* values, uint64_t n) {
  return sim::create_list(sim::float_arrays(), "aclCreateFloatArray", values, n);
}

CUSTOM_PYPTO_SIM_EXPORT aclBoolArray* aclCreateBoolArray(const bool* values, uint64_t n) {
  return sim::create_list(sim::bool_arrays(), "aclCreateBoolArray", values, n);
}

CUSTOM_PYPTO_SIM_EXPORT aclTensorList* aclCreateTensorList(const aclTensor* const* values,
                                                           uint64_t n) {
  return sim::create_list(sim::tensor_lists(), "aclCreateTensorList", values, n);
}

CUSTOM_PYPTO_SIM_EXPORT aclScalarList* aclCreateScalarList(const aclScalar* const* values,
                                                           uint64_t n) {
  return sim::create_list(sim::scalar_lists(), "aclCreateScalarList", values, n);
}

CUSTOM_PYPTO_SIM_EXPORT int aclDestroyTensor(const aclTensor* tensor) {
  return sim::tensors().destroy("aclDestroyTensor", tensor);
}

CUSTOM_PYPTO_SIM_EXPORT int aclDestroyScalar(const aclScalar* scalar) {
  return sim::scalars().destroy("aclDestroyScalar", scalar);
}

CUSTOM_PYPTO_SIM_EXPORT int aclDestroyIntArray(const aclIntArray* array) {
  return sim::int_arrays().destroy("aclDestroyIntArray", array);
}

CUSTOM_PYPTO_SIM_EXPORT int aclDestroyFloatArray(const aclFloatArray* array) {
  return sim::float_arrays().destroy("aclDestroyFloatArray", array);
}

CUSTOM_PYPTO_SIM_EXPORT int aclDestroyBoolArray(const aclBoolArray* array) {
  return sim::bool_arrays().destroy("aclDestroyBoolArray", array);
}

// A list owns its elements.
CUSTOM_PYPTO_SIM_EXPORT int aclDestroyTensorList(const aclTensorList* list) {
  if (list == nullptr) return ACL_SUCCESS;
  const auto elements = list->values;
  const int code = sim::tensor_lists().destroy("aclDestroyTensorList", list);
  if (code != ACL_SUCCESS) return code;
  for (const aclTensor* element : elements) sim::tensors().destroy("aclDestroyTensorList", element);
  return ACL_SUCCESS;
}

CUSTOM_PYPTO_SIM_EXPORT int aclDestroyScalarList(const aclScalarList* list) {
  if (list == nullptr) return ACL_SUCCESS;
  const auto elements = list->values;
  const int code = sim::scalar_lists().destroy("aclDestroyScalarList", list);
  if (code != ACL_SUCCESS) return code;
  for (const aclScalar* element : elements) sim::scalars().destroy("aclDestroyScalarList", element);
  return ACL_SUCCESS;
}

CUSTOM_PYPTO_SIM_EXPORT int aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  if (tensor == nullptr || format == nullptr) {
    return custom_pypto_sim_error(sim::kParameterNull, "aclGetFormat: null argument");
  }
  *format = tensor->format;
  return ACL_SUCCESS;
}

// The caller owns *shape and frees it with delete[], as CANN documents.
CUSTOM_PYPTO_SIM_EXPORT int aclGetViewShape(const aclTensor* tensor, int64_t** shape,
                                            uint64_t* dims) {
  if (tensor == nullptr) {
    return custom_pypto_sim_error(sim::kParameterNull, "aclGetViewShape: null tensor");
  }
  *dims = tensor->shape.size();
  *shape = new int64_t[*dims + 1];
  std::copy(tensor->shape.begin(), tensor->shape.end(), *shape);
  return ACL_SUCCESS;
}
