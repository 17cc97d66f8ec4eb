// Reads serialised graphs. Numbers of fields and types are those of ge_ir.proto, as in torchair's
// ge_ir_pb2.
#include "model.h"

#include "wire.h"

namespace custom_pypto_simulator {
namespace {

aclDataType dtype_of(int64_t number) {
  static const std::map<int64_t, aclDataType> dtypes = {
      {0, ACL_DT_UNDEFINED}, {1, ACL_FLOAT},        {2, ACL_FLOAT16},        {3, ACL_INT8},
      {4, ACL_UINT8},        {5, ACL_INT16},        {6, ACL_UINT16},         {7, ACL_INT32},
      {8, ACL_INT64},        {9, ACL_UINT32},       {10, ACL_UINT64},        {11, ACL_BOOL},
      {12, ACL_DOUBLE},      {13, ACL_STRING},      {16, ACL_COMPLEX64},     {17, ACL_COMPLEX128},
      {27, ACL_BF16},        {34, ACL_FLOAT8_E5M2}, {35, ACL_FLOAT8_E4M3FN},
  };
  const auto found = dtypes.find(number);
  need(found != dtypes.end(), "a graph has the data type ", number, ", which is not emulated");
  return found->second;
}

Attribute parse_attribute(std::string_view bytes);

std::pair<std::string, Attribute> parse_entry(std::string_view bytes) {
  std::pair<std::string, Attribute> entry;
  for (const Field& field : fields_of(bytes)) {
    if (field.number == 1) entry.first = field.text();
    if (field.number == 2) entry.second = parse_attribute(field.bytes);
  }
  return entry;
}

Description parse_description(std::string_view bytes) {
  Description description;
  for (const Field& field : fields_of(bytes)) {
    if (field.number == 1) description.name = field.text();
    if (field.number == 2) description.dtype = dtype_of(field.as_int());
    if (field.number == 3) {
      for (const Field& dim : fields_of(field.bytes)) {
        each_number(dim, [&](const Field& each) { description.shape.push_back(each.as_int()); });
      }
    }
    if (field.number == 5) {
      auto [name, attribute] = parse_entry(field.bytes);
      if (name == "_meta") description.meta = attribute.string;
    }
  }
  return description;
}

Attribute parse_list(std::string_view bytes) {
  Attribute list;
  list.type = Attribute::Type::list;
  for (const Field& field : fields_of(bytes)) {
    switch (field.number) {
      case 3:
      case 12:
        each_number(field, [&](const Field& each) { list.integers.push_back(each.as_int()); });
        break;
      case 4:
        if (field.type == 5) {
          list.reals.push_back(field.as_float());
        } else {
          for (Reader packed(field.bytes); !packed.is_empty();) {
            list.reals.push_back(Field{4, 5, packed.fixed(4), {}}.as_float());
          }
        }
        break;
      case 5:
        each_number(field, [&](const Field& each) { list.booleans.push_back(each.integer != 0); });
        break;
      case 2:  // strings, which no op of the simulator reads
      case 20:
        break;
      default:
        refuse("a graph has a list attribute with field ", field.number, ", which is not emulated");
    }
  }
  return list;
}

Attribute parse_tensor(std::string_view bytes) {
  Attribute tensor;
  tensor.type = Attribute::Type::tensor;
  for (const Field& field : fields_of(bytes)) {
    if (field.number == 1) {
      const Description description = parse_description(field.bytes);
      tensor.dtype = description.dtype;
      tensor.shape = description.shape;
    }
    if (field.number == 2) tensor.string = field.text();
  }
  return tensor;
}

Attribute parse_attribute(std::string_view bytes) {
  using Type = Attribute::Type;
  Attribute attribute;
  // A field of another number is of no op of the simulator; reading it fails by name.
  for (const Field& field : fields_of(bytes)) {
    if (field.number == 1) attribute = parse_list(field.bytes);
    if (field.number == 2) {
      attribute.type = Type::string;
      attribute.string = field.text();
    }
    if (field.number == 3 || field.number == 15) {
      attribute.type = Type::integer;
      attribute.integer = field.as_int();
    }
    if (field.number == 4) {
      attribute.type = Type::real;
      attribute.real = field.as_float();
    }
    if (field.number == 5) {
      attribute.type = Type::boolean;
      attribute.integer = field.integer != 0 ? 1 : 0;
    }
    if (field.number == 12) attribute = parse_tensor(field.bytes);
  }
  return attribute;
}

Node parse_node(std::string_view bytes) {
  Node node;
  for (const Field& field : fields_of(bytes)) {
    if (field.number == 1) node.name = field.text();
    if (field.number == 2) node.type = field.text();
    if (field.number == 5) node.inputs.push_back(field.text());
    if (field.number == 10) node.attributes.insert(parse_entry(field.bytes));
    if (field.number == 33) node.input_descriptions.push_back(parse_description(field.bytes));
    if (field.number == 34) node.output_descriptions.push_back(parse_description(field.bytes));
  }
  return node;
}

}  // namespace

Model parse_model(std::string_view bytes) {
  Model model;
  size_t graphs = 0;
  for (const Field& field : fields_of(bytes)) {
    if (field.number != 7 || graphs++ != 0) continue;  // further graphs belong to control flow
    for (const Field& each : fields_of(field.bytes)) {
      if (each.number == 6) model.nodes.push_back(parse_node(each.bytes));
    }
  }
  return model;
}

}  // namespace custom_pypto_simulator
