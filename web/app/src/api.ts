import { Code, ConnectError, type Interceptor, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { CheckpointService } from "@gen/stet/v1/checkpoint_service_pb";
import { CloudAgentService } from "@gen/stet/v1/cloudagent_service_pb";
import { ConversationService } from "@gen/stet/v1/conversation_service_pb";
import { PageService } from "@gen/stet/v1/page_service_pb";
import { BlobService, StoreService } from "@gen/stet/v1/store_service_pb";
import { signal } from "@preact/signals";
import { type Verdict, bearer, close, state } from "./session.ts";

// Every call sends the token; a token that the server refuses is dropped.
const authorized: Interceptor = (next) => async (req) => {
  if (bearer()) req.header.set("Authorization", `Bearer ${bearer()}`);
  try {
    return await next(req);
  } catch (err) {
    if (state.value === "open" && ConnectError.from(err).code === Code.Unauthenticated) close();
    throw err;
  }
};

// Requests use POST although reads could be GETs, so that arguments are in no
// address and in no log.
const transport = createConnectTransport({ baseUrl: location.origin, useBinaryFormat: true, interceptors: [authorized] });

export const conversations = createClient(ConversationService, transport);
export const checkpoints = createClient(CheckpointService, transport);
export const agents = createClient(CloudAgentService, transport);
export const page = createClient(PageService, transport);
export const store = createClient(StoreService, transport);
export const blobs = createClient(BlobService, transport);

/** storeDir is the directory of the store; empty if the server does not say it. */
export const storeDir = signal("");

/** check asks the server whether it accepts the current token. */
export async function check(): Promise<Verdict> {
  try {
    storeDir.value = (await store.info({})).dir;
    return "open";
  } catch (err) {
    const { code } = ConnectError.from(err);
    return code === Code.Unauthenticated ? "refused" : code === Code.PermissionDenied ? "open" : "away";
  }
}

/** Problem is an error as shown to users. */
export interface Problem {
  title: string;
  detail: string;
  /** What may help, or empty. */
  help: string;
  code: string;
  /** Whether the server is unreachable, so that the page may be out of date. */
  lost: boolean;
}

const cutOff: ReadonlySet<Code> = new Set([Code.Unavailable, Code.Unknown, Code.Canceled, Code.Unauthenticated]);

/** problemOf converts anything thrown to a Problem. */
export function problemOf(err: unknown): Problem {
  const e = ConnectError.from(err);
  const detail = e.rawMessage;
  const code = Code[e.code] ?? "Unknown";
  const say = (title: string, help: string): Problem => ({ title, detail, help, code, lost: cutOff.has(e.code) });
  switch (e.code) {
    case Code.NotFound:
      return say("Not found", "It may have been deleted. Use the search to find what is left.");
    case Code.Unauthenticated:
      return say("You are logged out", "Open the address that stet serve printed, or reload this page to enter the token.");
    case Code.PermissionDenied:
      return say("This is not allowed", "Your token does not allow this.");
    case Code.DataLoss:
      return say("Data is lost or damaged", "stet fsck lists the affected blobs and conversations.");
    case Code.FailedPrecondition:
      return say("The files have changed since", "Nothing was changed. Review the plan again.");
    case Code.Aborted:
      return say("Changed by another writer", "Nothing was changed. Try again.");
    case Code.ResourceExhausted:
      return say("No space left", "A limit is reached, or the disk is full. Nothing was changed.");
    case Code.Unavailable:
    case Code.Unknown:
    case Code.Canceled: // by the server, which is stopping
      return say("The server does not answer", "Is stet serve still running? This page reconnects by itself.");
    case Code.InvalidArgument:
      return say("Invalid request", "The address may be mistyped.");
    case Code.Unimplemented:
      return say("Not supported by this store", "A store on another machine cannot be listed from here.");
  }
  return say("Something went wrong", "See the server's log for details.");
}
