"""Prints the descriptors that protoc has written: package, calls, fields and values, a line each."""

import sys

from google.protobuf import descriptor_pb2

SCALARS = {number: name[len("TYPE_") :].lower() for name, number in descriptor_pb2.FieldDescriptorProto.Type.items()}


def short(name, package):
    return name.removeprefix(f".{package}.")


def message_lines(message, above, package):
    name = f"{above}{message.name}"
    for field in message.field:
        repeated = "repeated " if field.label == descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED else ""
        kind = short(field.type_name, package) if field.type_name else SCALARS[field.type]
        yield f"{name}.{field.name} = {field.number} {repeated}{kind}"
    for enum in message.enum_type:
        yield from enum_lines(enum, f"{name}.")
    for nested in message.nested_type:
        yield from message_lines(nested, f"{name}.", package)


def enum_lines(enum, above):
    for value in enum.value:
        yield f"{above}{enum.name}.{value.name} = {value.number}"


def main():
    descriptors = descriptor_pb2.FileDescriptorSet()
    with open(sys.argv[1], "rb") as file:
        descriptors.ParseFromString(file.read())
    for proto in descriptors.file:
        assert proto.syntax == "proto3"
        print(f"package {proto.package}")
        calls = []
        for service in proto.service:
            for call in service.method:
                streams = "stream " if call.server_streaming else ""
                types = f"{short(call.input_type, proto.package)} {streams}{short(call.output_type, proto.package)}"
                calls.append(f"{service.name}.{call.name} {types}")
        lines = [line for message in proto.message_type for line in message_lines(message, "", proto.package)]
        lines += [line for enum in proto.enum_type for line in enum_lines(enum, "")]
        print("\n".join(sorted(calls) + sorted(lines)))


main()
