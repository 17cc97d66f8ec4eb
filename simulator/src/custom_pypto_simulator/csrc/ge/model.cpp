// Reads serialised graphs. Numbers of fields and types are those of ge_ir.proto, as in torchair's
// ge_ir_pb2.
#include "model.h"

#include "wire.h"

namespace custom_pypto_simulator {
namespace {

aclDataType dtype_of(int64_t number) {
  switch (number) {
    case 0:
      return ACL_DT_UNDEFINED;
    case 1:
      return ACL_FLOAT;
    case 2:
      return ACL_FLOAT16;
    case 3:
      return ACL_INT8;
    case 4:
      return ACL_UINT8;
    case 5:
      return ACL_INT16;
    case 6:
      return ACL_UINT16;
    case 7:
      return ACL_INT32;
    case 8:
      return ACL_INT64;
    case 9:
      return ACL_UINT32;
    case 10:
      return ACL_UINT64;
    case 11:
      return ACL_BOOL;
    case 12:
      return ACL_DOUBLE;
    case 13:
      return ACL_STRING;
    case 16:
      return ACL_COMPLEX64;
    case 17:
      return ACL_COMPLEX128;
    case 27:
      return ACL_BF16;
    case 34:
      return ACL_FLOAT8_E5M2;
    case 35:
      return ACL_FLOAT8_E4M3FN;
    default:
      throw std::invalid_argument("a graph has the data type " + std::to_string(number) +
                                  ", which is not emulated");
  }
}

Attribute parse_attribute(std::string_view bytes);

std::pair<std::string, Attribute> parse_entry(std::string_view bytes) {
  std::pair<std::string, Attribute> entry;
  Message message(bytes);
  for (Field field{}; message.next(field);) {
    if (field.number == 1) entry.first = field.text();
    if (field.number == 2) entry.second = parse_attribute(field.bytes);
  }
  return entry;
}

Description parse_description(std::string_view bytes) {
  Description description;
  Message message(bytes);
  for (Field field{}; message.next(field);) {
    if (field.number == 1) description.name = field.text();
    if (field.number == 2) description.dtype = dtype_of(field.as_int());
    if (field.number == 3) {
      Message shape(field.bytes);
      for (Field dim{}; shape.next(dim);) {
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
  Message message(bytes);
  for (Field field{}; message.next(field);) {
    switch (field.number) {
      case 2:
        list.strings.push_back(field.text());
        break;
      case 3:
      case 12:
        each_number(field, [&](const Field& each) { list.integers.push_back(each.as_int()); });
        break;
      case 4:
        if (field.type == 5) {
          list.reals.push_back(field.as_float());
        } else {
          for (Message packed(field.bytes); !packed.empty();) {
            list.reals.push_back(Field{4, 5, packed.fixed(4), {}}.as_float());
          }
        }
        break;
      case 5:
        each_number(field, [&](const Field& each) { list.booleans.push_back(each.integer != 0); });
        break;
      case 20:
        break;
      default:
        throw std::invalid_argument("a graph has a list attribute with field " +
                                    std::to_string(field.number) + ", which is not emulated");
    }
  }
  return list;
}

Attribute parse_tensor(std::string_view bytes) {
  Attribute tensor;
  tensor.type = Attribute::Type::tensor;
  Message message(bytes);
  for (Field field{}; message.next(field);) {
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
  Attribute attribute;
  Message message(bytes);
  for (Field field{}; message.next(field);) {
    switch (field.number) {
      case 1:
        attribute = parse_list(field.bytes);
        break;
      case 2:
        attribute.type = Attribute::Type::string;
        attribute.string = field.text();
        break;
      case 3:
      case 15:
        attribute.type = Attribute::Type::integer;
        attribute.integer = field.as_int();
        break;
      case 4:
        attribute.type = Attribute::Type::real;
        attribute.real = field.as_float();
        break;
      case 5:
        attribute.type = Attribute::Type::boolean;
        attribute.integer = field.integer != 0 ? 1 : 0;
        break;
      case 12:
        attribute = parse_tensor(field.bytes);
        break;
      default:
        break;  // no op of the simulator reads such an attribute; reading it fails by name
    }
  }
  return attribute;
}

Node parse_node(std::string_view bytes) {
  Node node;
  Message message(bytes);
  for (Field field{}; message.next(field);) {
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
  Message message(bytes);
  size_t graphs = 0;
  for (Field field{}; message.next(field);) {
    if (field.number != 7 || graphs++ != 0) continue;  // further graphs belong to control flow
    Message graph(field.bytes);
    for (Field each{}; graph.next(each);) {
      if (each.number == 6) model.nodes.push_back(parse_node(each.bytes));
    }
  }
  return model;
}

}  // namespace custom_pypto_simulator
