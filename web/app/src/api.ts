import { Code, ConnectError, type Interceptor, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { CheckpointService } from "@gen/stet/v1/checkpoint_service_pb";
import { CloudAgentService } from "@gen/stet/v1/cloudagent_service_pb";
import { ConversationService } from "@gen/stet/v1/conversation_service_pb";
import { PageService } from "@gen/stet/v1/page_service_pb";
import { BlobService, StoreService } from "@gen/stet/v1/store_service_pb";
import { type Verdict, bearer, close, state } from "./session.ts";

// Every call carries the token; one that the server refuses is forgotten.
const authorized: Interceptor = (next) => async (req) => {
  if (bearer()) req.header.set("Authorization", `Bearer ${bearer()}`);
  try {
    return await next(req);
  } catch (err) {
    if (state.value === "open" && ConnectError.from(err).code === Code.Unauthenticated) close();
    throw err;
  }
};

// Requests go by POST although reads could be GETs: what is asked for then is in
// no address, and so in no log.
const transport = createConnectTransport({ baseUrl: location.origin, useBinaryFormat: true, interceptors: [authorized] });

export const conversations = createClient(ConversationService, transport);
export const checkpoints = createClient(CheckpointService, transport);
export const agents = createClient(CloudAgentService, transport);
export const page = createClient(PageService, transport);
export const store = createClient(StoreService, transport);
export const blobs = createClient(BlobService, transport);

/** check asks the server whether it accepts the token that calls carry. */
export async function check(): Promise<Verdict> {
  try {
    await store.info({});
    return "open";
  } catch (err) {
    const { code } = ConnectError.from(err);
    return code === Code.Unauthenticated ? "refused" : code === Code.PermissionDenied ? "open" : "away";
  }
}

/** Problem is an error in words for people. */
export interface Problem {
  title: string;
  detail: string;
  /** What may help, or empty. */
  help: string;
  code: string;
  /** Whether the page is cut off from the server, so that what it shows may be old. */
  lost: boolean;
}

const cutOff: ReadonlySet<Code> = new Set([Code.Unavailable, Code.Unknown, Code.Canceled, Code.Unauthenticated]);

/** problemOf turns whatever was thrown into words. */
export function problemOf(err: unknown): Problem {
  const e = ConnectError.from(err);
  const detail = e.rawMessage;
  const code = Code[e.code] ?? "Unknown";
  const say = (title: string, help: string): Problem => ({ title, detail, help, code, lost: cutOff.has(e.code) });
  switch (e.code) {
    case Code.NotFound:
      return say("There is no such thing here", "It may have been deleted, or collected as garbage. The search finds what is left.");
    case Code.Unauthenticated:
      return say("You are logged out", "Open the address that stet serve printed, or reload this page to enter the token.");
    case Code.PermissionDenied:
      return say("This is not allowed", "The token that you gave may not do this.");
    case Code.DataLoss:
      return say("A part is lost or damaged", "stet fsck tells which blobs are affected, and which conversations need them.");
    case Code.FailedPrecondition:
      return say("Things have changed", "Look at the plan again: nothing was changed.");
    case Code.Aborted:
      return say("Somebody else was faster", "Nothing was changed. Try again.");
    case Code.ResourceExhausted:
      return say("There is no room for this", "A limit is reached, or the disk is full. Nothing was changed.");
    case Code.Unavailable:
    case Code.Unknown:
    case Code.Canceled: // by the server: it stops
      return say("The server does not answer", "Is stet serve still running? This page goes on when it is back.");
    case Code.InvalidArgument:
      return say("The server does not understand this", "The address may be mistyped.");
    case Code.Unimplemented:
      return say("This store cannot do that", "A store on another machine cannot be enumerated from here.");
  }
  return say("Something went wrong", "The server's log tells more.");
}
