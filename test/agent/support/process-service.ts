import { create, createFileRegistry, type DescService } from '@bufbuild/protobuf';
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodDescriptorProtoSchema,
  OneofDescriptorProtoSchema,
  ServiceDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt';

type Field = {
  name: string;
  type: 'string' | 'bytes' | 'uint32' | 'sint32' | 'bool' | (string & {});
  repeated?: boolean;
  oneof?: boolean;
};

const scalar: Record<string, FieldDescriptorProto_Type> = {
  string: FieldDescriptorProto_Type.STRING,
  bytes: FieldDescriptorProto_Type.BYTES,
  uint32: FieldDescriptorProto_Type.UINT32,
  sint32: FieldDescriptorProto_Type.SINT32,
  bool: FieldDescriptorProto_Type.BOOL,
};

const message = (name: string, ...fields: Field[]): DescriptorProto =>
  create(DescriptorProtoSchema, {
    name,
    oneofDecl: fields.some(field => field.oneof) ? [create(OneofDescriptorProtoSchema, { name: 'choice' })] : [],
    field: fields.map((field, index) =>
      create(FieldDescriptorProtoSchema, {
        name: field.name,
        jsonName: field.name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
        number: index + 1,
        label: field.repeated ? FieldDescriptorProto_Label.REPEATED : FieldDescriptorProto_Label.OPTIONAL,
        type: scalar[field.type] ?? FieldDescriptorProto_Type.MESSAGE,
        ...(scalar[field.type] === undefined ? { typeName: `.process.${field.type}` } : {}),
        ...(field.oneof ? { oneofIndex: 0 } : {}),
      }),
    ),
  });

/** A part of the service as a schema compiler would describe it, for clients made from descriptors. */
export function describeProcessService(): DescService {
  const file = create(FileDescriptorProtoSchema, {
    name: 'process.proto',
    package: 'process',
    syntax: 'proto3',
    messageType: [
      message('Config', { name: 'cmd', type: 'string' }, { name: 'args', type: 'string', repeated: true }),
      message(
        'StartRequest',
        { name: 'process', type: 'Config' },
        { name: 'tag', type: 'string' },
        { name: 'stdin', type: 'bool' },
      ),
      message('Started', { name: 'pid', type: 'uint32' }),
      message(
        'Data',
        { name: 'stdout', type: 'bytes', oneof: true },
        { name: 'stderr', type: 'bytes', oneof: true },
        { name: 'pty', type: 'bytes', oneof: true },
      ),
      message(
        'Ended',
        { name: 'exit_code', type: 'sint32' },
        { name: 'exited', type: 'bool' },
        { name: 'status', type: 'string' },
      ),
      message('Keepalive'),
      message(
        'Event',
        { name: 'start', type: 'Started', oneof: true },
        { name: 'data', type: 'Data', oneof: true },
        { name: 'end', type: 'Ended', oneof: true },
        { name: 'keepalive', type: 'Keepalive', oneof: true },
      ),
      message('StartResponse', { name: 'event', type: 'Event' }),
      message('Selector', { name: 'pid', type: 'uint32', oneof: true }, { name: 'tag', type: 'string', oneof: true }),
      message('Input', { name: 'stdin', type: 'bytes', oneof: true }, { name: 'pty', type: 'bytes', oneof: true }),
      message('StreamStart', { name: 'process', type: 'Selector' }),
      message('StreamData', { name: 'input', type: 'Input' }),
      message(
        'StreamInputRequest',
        { name: 'start', type: 'StreamStart', oneof: true },
        { name: 'data', type: 'StreamData', oneof: true },
        { name: 'keepalive', type: 'Keepalive', oneof: true },
      ),
      message('Empty'),
      message('SelectorRequest', { name: 'process', type: 'Selector' }),
    ],
    service: [
      create(ServiceDescriptorProtoSchema, {
        name: 'Process',
        method: [
          create(MethodDescriptorProtoSchema, {
            name: 'Start',
            inputType: '.process.StartRequest',
            outputType: '.process.StartResponse',
            serverStreaming: true,
          }),
          create(MethodDescriptorProtoSchema, {
            name: 'StreamInput',
            inputType: '.process.StreamInputRequest',
            outputType: '.process.Empty',
            clientStreaming: true,
          }),
          create(MethodDescriptorProtoSchema, {
            name: 'CloseStdin',
            inputType: '.process.SelectorRequest',
            outputType: '.process.Empty',
          }),
        ],
      }),
    ],
  });
  const service = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getService('process.Process');
  if (!service) throw new Error('the service is not in its own file');
  return service;
}
