import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { type FieldDescriptorProto, FieldDescriptorProto_Type, type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Plugin } from "vite";

// The generated code carries a description of every message of its file, and
// refers to the descriptions of all files that it imports. The page reads few of
// the messages; a state of a conversation alone would bring in thirty files. So
// fields whose type lies in other packages are taken out of the descriptions:
// readers step over fields that they do not know. Messages and methods keep their
// places, by which the generated code finds them.
const kept = "stet.v1";

/** pruned is a plugin that leaves out what the page never reads. */
export function pruned(gen: string): Plugin {
  return {
    name: "prune-descriptions",
    enforce: "pre",
    transform(code, id) {
      const file = id.split("?")[0];
      if (!file.startsWith(gen) || !file.endsWith("_pb.ts")) return null;
      return prune(code);
    },
  };
}

/** prune rewrites one generated file. */
export function prune(code: string): string {
  const call = /fileDesc\("([^"]*)"(?:, \[([^\]]*)\])?\)/.exec(code);
  if (!call) throw new Error("a generated file without a description");
  const file = fromBinary(FileDescriptorProtoSchema, base64Decode(call[1]));
  strip(file);
  const names = (call[2] ?? "").split(",").map((s) => s.trim()).filter((s) => s.startsWith("file_stet_v1_"));
  const text = `fileDesc("${base64Encode(toBinary(FileDescriptorProtoSchema, file), "std_raw")}"${names.length ? `, [${names.join(", ")}]` : ""})`;
  return code.slice(0, call.index) + text + code.slice(call.index + call[0].length);
}

function strip(file: FileDescriptorProto): void {
  file.dependency = file.dependency.filter((d) => d.startsWith("stet/v1/"));
  file.publicDependency = [];
  file.weakDependency = [];
  file.options = undefined;
  const messages = [...file.messageType];
  for (let m = messages.pop(); m; m = messages.pop()) {
    messages.push(...m.nestedType);
    for (const f of m.field) if (f.type === FieldDescriptorProto_Type.ENUM && !ours(f.typeName)) asNumber(f);
    m.field = m.field.filter((f) => f.typeName === "" || ours(f.typeName));
    // A oneof without fields is an error, and those behind it move up.
    const used = m.oneofDecl.map((_, i) => m.field.some((f) => f.oneofIndex === i));
    const place = used.map((_, i) => used.slice(0, i).filter(Boolean).length);
    m.oneofDecl = m.oneofDecl.filter((_, i) => used[i]);
    for (const f of m.field) if (f.oneofIndex !== undefined && hasOneof(f)) f.oneofIndex = place[f.oneofIndex];
  }
}

const ours = (name: string) => name.startsWith(`.${kept}.`);

// An enum is a number on the wire.
function asNumber(f: FieldDescriptorProto): void {
  f.type = FieldDescriptorProto_Type.INT32;
  f.typeName = "";
}

// oneofIndex has presence; reading it of a field without one gives 0.
function hasOneof(f: object): boolean {
  return Object.prototype.hasOwnProperty.call(f, "oneofIndex");
}
