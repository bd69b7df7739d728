// Keeps an entry of a session as the SDK does, and reads it back.
//
//   STET_URL=http://127.0.0.1:7717 STET_TOKEN=$(cat ~/.local/share/stet/token) node quickstart.js
import { StetSessionStore } from "@stet-dev/claude-agent-sdk";

const store = StetSessionStore.connect(process.env["STET_URL"] ?? "http://127.0.0.1:7717", process.env["STET_TOKEN"] ?? "");

const session = { projectKey: "shop", sessionId: "7d1c8a52-6f2e-4c4b-9a54-0e1f6a1b2c3d" };
await store.append(session, [{ type: "user", uuid: "5b0f3c1e-2d4a-4e6b-8c7d-9e0f1a2b3c4d", timestamp: new Date().toISOString() }]);
console.log((await store.load(session))?.map((entry) => entry.type).join(" "));
