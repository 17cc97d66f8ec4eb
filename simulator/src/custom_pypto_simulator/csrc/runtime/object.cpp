// aclCreate*, aclDestroy*, and the functions that read these objects.
#include <algorithm>
#include <cstring>
#include <utility>

#include "pool.h"

namespace custom_pypto_simulator {
namespace {

Pool<aclTensor>& tensors() { return pool<aclTensor>("tensor"); }
Pool<aclScalar>& scalars() { return pool<aclScalar>("scalar"); }

// A list owns its elements; values are in the array itself.
template <class Value>
void destroy_element(const char*, Value) {}
void destroy_element(const char* function, const aclTensor* tensor) {
  tensors().destroy(function, tensor);
}

template <class Object>
int destroy_array(Pool<Object>& pool, const char* function, const Object* array) {
  if (array == nullptr) return ACL_SUCCESS;
  const auto elements = array->values;
  const int code = pool.destroy(function, array);
  if (code != ACL_SUCCESS) return code;
  for (const auto element : elements) destroy_element(function, element);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

// 0 for the types that are not known here.
size_t aclDataTypeSize(aclDataType dtype) {
  constexpr std::pair<aclDataType, size_t> kSizes[] = {
      {ACL_INT8, 1},        {ACL_UINT8, 1},         {ACL_BOOL, 1},        {ACL_HIFLOAT8, 1},
      {ACL_FLOAT8_E5M2, 1}, {ACL_FLOAT8_E4M3FN, 1}, {ACL_FLOAT8_E8M0, 1}, {ACL_FLOAT16, 2},
      {ACL_BF16, 2},        {ACL_INT16, 2},         {ACL_UINT16, 2},      {ACL_FLOAT, 4},
      {ACL_INT32, 4},       {ACL_UINT32, 4},        {ACL_COMPLEX32, 4},   {ACL_DOUBLE, 8},
      {ACL_INT64, 8},       {ACL_UINT64, 8},        {ACL_COMPLEX64, 8},   {ACL_COMPLEX128, 16}};
  for (const auto& [known, size] : kSizes) {
    if (known == dtype) return size;
  }
  return 0;
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
  std::memcpy(scalar->value, value, aclDataTypeSize(dtype));
  return scalar;
}

#define CUSTOM_PYPTO_SIM_ARRAY(Name, Element, kind)                                       \
  CUSTOM_PYPTO_SIM_EXPORT acl##Name* aclCreate##Name(const Element* values, uint64_t n) { \
    acl##Name* array = sim::pool<acl##Name>(kind).create("aclCreate" #Name);              \
    if (array != nullptr) array->values.assign(values, values + n);                       \
    return array;                                                                         \
  }                                                                                       \
  CUSTOM_PYPTO_SIM_EXPORT int aclDestroy##Name(const acl##Name* array) {                  \
    return sim::destroy_array(sim::pool<acl##Name>(kind), "aclDestroy" #Name, array);     \
  }

CUSTOM_PYPTO_SIM_ARRAY(IntArray, int64_t, "int array")
CUSTOM_PYPTO_SIM_ARRAY(FloatArray, float, "float array")
CUSTOM_PYPTO_SIM_ARRAY(BoolArray, bool, "bool array")
CUSTOM_PYPTO_SIM_ARRAY(TensorList, aclTensor* const, "tensor list")

CUSTOM_PYPTO_SIM_EXPORT int aclDestroyTensor(const aclTensor* tensor) {
  return sim::tensors().destroy("aclDestroyTensor", tensor);
}

CUSTOM_PYPTO_SIM_EXPORT int aclDestroyScalar(const aclScalar* scalar) {
  return sim::scalars().destroy("aclDestroyScalar", scalar);
}

// The caller owns *shape and frees it with delete[], as CANN documents.
CUSTOM_PYPTO_SIM_EXPORT int aclGetViewShape(const aclTensor* tensor, int64_t** shape,
                                            uint64_t* dims) {
  if (tensor == nullptr) {
    return sim::fail(sim::kParameterNull, "aclGetViewShape: null tensor");
  }
  *dims = tensor->shape.size();
  *shape = new int64_t[*dims + 1];
  std::copy(tensor->shape.begin(), tensor->shape.end(), *shape);
  return ACL_SUCCESS;
}
