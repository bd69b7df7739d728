// Keeps a checkpoint as a graph does, and reads it back.
//
//   STET_URL=http://127.0.0.1:7717 STET_TOKEN=$(cat ~/.local/share/stet/token) node quickstart.js
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { StetSaver } from "@stet-dev/langgraph";

const saver = StetSaver.connect(process.env["STET_URL"] ?? "http://127.0.0.1:7717", process.env["STET_TOKEN"] ?? "");

const thread = { configurable: { thread_id: "trip", checkpoint_ns: "" } };
const checkpoint = { ...emptyCheckpoint(), channel_values: { city: "Oslo" }, channel_versions: { city: 1 } };
await saver.put(thread, checkpoint, { source: "input", step: -1, parents: {} }, { city: 1 });
console.log((await saver.getTuple(thread))?.checkpoint.channel_values["city"]);
