// The graph engine's strings, shapes and tensors, declared by the headers in the torch_npu wheel.
#include <cstring>
#include <functional>

#include "engine.h"

namespace ge {

AscendString::AscendString(const char_t* const name)
    : name_(std::make_shared<std::string>(name == nullptr ? "" : name)) {}
const char_t* AscendString::GetString() const { return name_ ? name_->c_str() : ""; }
bool AscendString::operator==(const AscendString& other) const {
  return std::strcmp(GetString(), other.GetString()) == 0;
}
bool AscendString::operator<(const AscendString& other) const {
  return std::strcmp(GetString(), other.GetString()) < 0;
}

class ShapeImpl {
 public:
  std::vector<int64_t> dims;
};

Shape::Shape() : impl_(std::make_shared<ShapeImpl>()) {}
Shape::Shape(const std::vector<int64_t>& dims) : Shape() { impl_->dims = dims; }
std::vector<int64_t> Shape::GetDims() const { return impl_->dims; }

class TensorDescImpl {
 public:
  Shape shape;
  Format format = FORMAT_ND;
  DataType dtype = DT_FLOAT;
  Placement placement = kPlacementHost;
};

TensorDesc::TensorDesc() : impl(std::make_shared<TensorDescImpl>()) {}
TensorDesc::TensorDesc(const TensorDesc& other)
    : impl(std::make_shared<TensorDescImpl>(*other.impl)) {}
TensorDesc& TensorDesc::operator=(const TensorDesc& other) {
  *impl = *other.impl;
  return *this;
}
Shape TensorDesc::GetShape() const { return impl->shape; }
void TensorDesc::SetShape(const Shape& shape) { impl->shape = shape; }
void TensorDesc::SetOriginShape(const Shape&) {}  // nothing reads it
Format TensorDesc::GetFormat() const { return impl->format; }
void TensorDesc::SetFormat(Format format) { impl->format = format; }
void TensorDesc::SetOriginFormat(Format) {}  // nothing reads it
DataType TensorDesc::GetDataType() const { return impl->dtype; }
void TensorDesc::SetDataType(DataType dtype) { impl->dtype = dtype; }
Placement TensorDesc::GetPlacement() const { return impl->placement; }
void TensorDesc::SetPlacement(Placement placement) { impl->placement = placement; }

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

Tensor::Tensor() : impl(std::make_shared<TensorImpl>()) {}
graphStatus Tensor::SetTensorDesc(const TensorDesc& description) {
  impl->shape = description.GetShape().GetDims();
  impl->dtype = description.GetDataType();
  impl->format = description.GetFormat();
  impl->placement = description.GetPlacement();
  return GRAPH_SUCCESS;
}
TensorDesc Tensor::GetTensorDesc() const {
  TensorDesc description;
  description.SetShape(Shape(impl->shape));
  description.SetDataType(impl->dtype);
  description.SetFormat(impl->format);
  description.SetPlacement(impl->placement);
  return description;
}
graphStatus Tensor::SetData(uint8_t* data, size_t size, const DeleteFunc& deleter) {
  impl->release();
  impl->data = data;
  impl->size = size;
  impl->deleter = deleter;
  return GRAPH_SUCCESS;
}
graphStatus Tensor::ResetData(uint8_t* data, size_t size, const DeleteFunc& deleter) {
  return SetData(data, size, deleter);
}
std::unique_ptr<uint8_t[], Tensor::DeleteFunc> Tensor::ResetData() {
  const DeleteFunc nothing = [](uint8_t*) {};
  std::unique_ptr<uint8_t[], DeleteFunc> data(impl->data, impl->deleter ? impl->deleter : nothing);
  impl->data = nullptr;
  impl->size = 0;
  impl->deleter = nullptr;
  return data;
}
uint8_t* Tensor::GetData() { return impl->data; }
const uint8_t* Tensor::GetData() const { return impl->data; }
size_t Tensor::GetSize() const { return impl->size; }
graphStatus Tensor::SetShapeDimNum(const size_t dims) {
  impl->shape.resize(dims);
  return GRAPH_SUCCESS;
}
size_t Tensor::GetShapeDimNum() const { return impl->shape.size(); }
graphStatus Tensor::SetShapeDim(const size_t index, const int64_t size) {
  impl->shape.at(index) = size;
  return GRAPH_SUCCESS;
}
int64_t Tensor::GetShapeDim(const size_t index) const { return impl->shape.at(index); }
graphStatus Tensor::SetOriginShapeDimNum(const size_t dims) {
  impl->origin_shape.resize(dims);
  return GRAPH_SUCCESS;
}
size_t Tensor::GetOriginShapeDimNum() const { return impl->origin_shape.size(); }
graphStatus Tensor::SetOriginShapeDim(const size_t index, const int64_t size) {
  impl->origin_shape.at(index) = size;
  return GRAPH_SUCCESS;
}
graphStatus Tensor::SetFormat(const Format& format) {
  impl->format = format;
  return GRAPH_SUCCESS;
}
Format Tensor::GetFormat() const { return impl->format; }
graphStatus Tensor::SetDataType(const DataType& dtype) {
  impl->dtype = dtype;
  return GRAPH_SUCCESS;
}
DataType Tensor::GetDataType() const { return impl->dtype; }
graphStatus Tensor::SetPlacement(const Placement& placement) {
  impl->placement = placement;
  return GRAPH_SUCCESS;
}
Placement Tensor::GetPlacement() const { return impl->placement; }

const char_t* GetFormatName(Format format) { return format == FORMAT_ND ? "ND" : "other"; }

}  // namespace ge
