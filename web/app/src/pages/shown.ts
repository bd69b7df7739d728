import type { Conversation } from "@gen/stet/v1/conversation_service_pb";
import type { TimelineEntry, TimelineResponse } from "@gen/stet/v1/page_service_pb";

/** Shown is what the parts of the page of a conversation show: the conversation, its timeline and the selected point. */
export interface Shown {
  info: Conversation;
  timeline: TimelineResponse;
  /** The entries of the timeline, including gaps of removed checkpoints. */
  rows: TimelineEntry[];
  /** The selected checkpoint; undefined for the newest. */
  entry: TimelineEntry | undefined;
  /** The selected state, empty if there is none. */
  root: Uint8Array;
}
