// The graph engine's strings, shapes and tensors, declared by the headers in the torch_npu wheel.
#include <cstring>
#include <functional>

#include "engine.h"

namespace ge {

CUSTOM_PYPTO_SIM_PUBLIC AscendString::AscendString(const char_t* const name)
    : name_(std::make_shared<std::string>(name == nullptr ? "" : name)) {}
CUSTOM_PYPTO_SIM_PUBLIC const char_t* AscendString::GetString() const {
  return name_ ? name_->c_str() : "";
}
CUSTOM_PYPTO_SIM_PUBLIC bool AscendString::operator==(const AscendString& other) const {
  return std::strcmp(GetString(), other.GetString()) == 0;
}
CUSTOM_PYPTO_SIM_PUBLIC bool AscendString::operator<(const AscendString& other) const {
  return std::strcmp(GetString(), other.GetString()) < 0;
}

class ShapeImpl {
 public:
  std::vector<int64_t> dims;
};

CUSTOM_PYPTO_SIM_PUBLIC Shape::Shape() : impl_(std::make_shared<ShapeImpl>()) {}
CUSTOM_PYPTO_SIM_PUBLIC Shape::Shape(const std::vector<int64_t>& dims) : Shape() {
  impl_->dims = dims;
}
CUSTOM_PYPTO_SIM_PUBLIC std::vector<int64_t> Shape::GetDims() const { return impl_->dims; }

class TensorDescImpl {
 public:
  Shape shape;
  Shape origin_shape;
  Format format = FORMAT_ND;
  Format origin_format = FORMAT_ND;
  DataType dtype = DT_FLOAT;
  Placement placement = kPlacementHost;
};

CUSTOM_PYPTO_SIM_PUBLIC TensorDesc::TensorDesc() : impl(std::make_shared<TensorDescImpl>()) {}
CUSTOM_PYPTO_SIM_PUBLIC TensorDesc::TensorDesc(const TensorDesc& other)
    : impl(std::make_shared<TensorDescImpl>(*other.impl)) {}
CUSTOM_PYPTO_SIM_PUBLIC TensorDesc& TensorDesc::operator=(const TensorDesc& other) {
  *impl = *other.impl;
  return *this;
}
CUSTOM_PYPTO_SIM_PUBLIC Shape TensorDesc::GetShape() const { return impl->shape; }
CUSTOM_PYPTO_SIM_PUBLIC void TensorDesc::SetShape(const Shape& shape) { impl->shape = shape; }
CUSTOM_PYPTO_SIM_PUBLIC void TensorDesc::SetOriginShape(const Shape& shape) {
  impl->origin_shape = shape;
}
CUSTOM_PYPTO_SIM_PUBLIC Format TensorDesc::GetFormat() const { return impl->format; }
CUSTOM_PYPTO_SIM_PUBLIC void TensorDesc::SetFormat(Format format) { impl->format = format; }
CUSTOM_PYPTO_SIM_PUBLIC void TensorDesc::SetOriginFormat(Format format) {
  impl->origin_format = format;
}
CUSTOM_PYPTO_SIM_PUBLIC DataType TensorDesc::GetDataType() const { return impl->dtype; }
CUSTOM_PYPTO_SIM_PUBLIC void TensorDesc::SetDataType(DataType dtype) { impl->dtype = dtype; }
CUSTOM_PYPTO_SIM_PUBLIC Placement TensorDesc::GetPlacement() const { return impl->placement; }
CUSTOM_PYPTO_SIM_PUBLIC void TensorDesc::SetPlacement(Placement placement) {
  impl->placement = placement;
}

class TensorImpl {
 public:
  ~TensorImpl() { release(); }

  void release() {
    if (data != nullptr && deleter) deleter(data);
    data = nullptr;
    size = 0;
    deleter = nullptr;
  }

  std::vector<int64_t> shape;
  std::vector<int64_t> origin_shape;
  Format format = FORMAT_ND;
  DataType dtype = DT_FLOAT;
  Placement placement = kPlacementHost;
  uint8_t* data = nullptr;
  size_t size = 0;
  Tensor::DeleteFunc deleter;
};

CUSTOM_PYPTO_SIM_PUBLIC Tensor::Tensor() : impl(std::make_shared<TensorImpl>()) {}
CUSTOM_PYPTO_SIM_PUBLIC graphStatus Tensor::SetTensorDesc(const TensorDesc& description) {
  impl->shape = description.GetShape().GetDims();
  impl->dtype = description.GetDataType();
  impl->format = description.GetFormat();
  impl->placement = description.GetPlacement();
  return GRAPH_SUCCESS;
}
CUSTOM_PYPTO_SIM_PUBLIC TensorDesc Tensor::GetTensorDesc() const {
  TensorDesc description;
  description.SetShape(Shape(impl->shape));
  description.SetDataType(impl->dtype);
  description.SetFormat(impl->format);
  description.SetPlacement(impl->placement);
  return description;
}
CUSTOM_PYPTO_SIM_PUBLIC graphStatus Tensor::SetData(uint8_t* data, size_t size,
                                                    const DeleteFunc& deleter) {
  impl->release();
  impl->data = data;
  impl->size = size;
  impl->deleter = deleter;
  return GRAPH_SUCCESS;
}
CUSTOM_PYPTO_SIM_PUBLIC graphStatus Tensor::ResetData(uint8_t* data, size_t size,
                                                      const DeleteFunc& deleter) {
  return SetData(data, size, deleter);
}
CUSTOM_PYPTO_SIM_PUBLIC std::unique_ptr<uint8_t[], Tensor::DeleteFunc> Tensor::ResetData() {
  const DeleteFunc nothing = [](uint8_t*) {};
  std::unique_ptr<uint8_t[], DeleteFunc> data(impl->data, impl->deleter ? impl->deleter : nothing);
  impl->data = nullptr;
  impl->size = 0;
  impl->deleter = nullptr;
  return data;
}
CUSTOM_PYPTO_SIM_PUBLIC uint8_t* Tensor::GetData() { return impl->data; }
CUSTOM_PYPTO_SIM_PUBLIC const uint8_t* Tensor::GetData() const { return impl->data; }
CUSTOM_PYPTO_SIM_PUBLIC size_t Tensor::GetSize() const { return impl->size; }
CUSTOM_PYPTO_SIM_PUBLIC graphStatus Tensor::SetShapeDimNum(const size_t dims) {
  impl->shape.resize(dims);
  return GRAPH_SUCCESS;
}
CUSTOM_PYPTO_SIM_PUBLIC size_t Tensor::GetShapeDimNum() const { return impl->shape.size(); }
CUSTOM_PYPTO_SIM_PUBLIC graphStatus Tensor::SetShapeDim(const size_t index, const int64_t size) {
  impl->shape.at(index) = size;
  return GRAPH_SUCCESS;
}
CUSTOM_PYPTO_SIM_PUBLIC int64_t Tensor::GetShapeDim(const size_t index) const {
  return impl->shape.at(index);
}
CUSTOM_PYPTO_SIM_PUBLIC graphStatus Tensor::SetOriginShapeDimNum(const size_t dims) {
  impl->origin_shape.resize(dims);
  return GRAPH_SUCCESS;
}
CUSTOM_PYPTO_SIM_PUBLIC size_t Tensor::GetOriginShapeDimNum() const {
  return impl->origin_shape.size();
}
CUSTOM_PYPTO_SIM_PUBLIC graphStatus Tensor::SetOriginShapeDim(const size_t index,
                                                              const int64_t size) {
  impl->origin_shape.at(index) = size;
  return GRAPH_SUCCESS;
}
CUSTOM_PYPTO_SIM_PUBLIC graphStatus Tensor::SetFormat(const Format& format) {
  impl->format = format;
  return GRAPH_SUCCESS;
}
CUSTOM_PYPTO_SIM_PUBLIC Format Tensor::GetFormat() const { return impl->format; }
CUSTOM_PYPTO_SIM_PUBLIC graphStatus Tensor::SetDataType(const DataType& dtype) {
  impl->dtype = dtype;
  return GRAPH_SUCCESS;
}
CUSTOM_PYPTO_SIM_PUBLIC DataType Tensor::GetDataType() const { return impl->dtype; }
CUSTOM_PYPTO_SIM_PUBLIC graphStatus Tensor::SetPlacement(const Placement& placement) {
  impl->placement = placement;
  return GRAPH_SUCCESS;
}
CUSTOM_PYPTO_SIM_PUBLIC Placement Tensor::GetPlacement() const { return impl->placement; }

CUSTOM_PYPTO_SIM_PUBLIC const char_t* GetFormatName(Format format) {
  return format == FORMAT_ND ? "ND" : "other";
}

}  // namespace ge
