import type { Stet } from "./client.js";
import { hasReason } from "./errors.js";
import type { Document, NewDocument } from "./gen/stet/v1/document_service_pb.js";

/** How often a change is tried while other writers are faster. */
const attempts = 100;

/** The content of a new document: inside the message, or put as a blob before. */
export type NewContent = Extract<NewDocument["content"], { case: "data" | "blob" }>;

/** A list of documents of a collection. */
export interface DocumentQuery {
  collection: string;
  /** Only documents whose names begin with it. */
  prefix?: string;
  /** Only documents whose names are greater or, in a reversed list, smaller. */
  after?: string;
  reverse?: boolean;
  /** Leaves out the contents. */
  namesOnly?: boolean;
  /** Documents in a page; the server has a default. */
  pageSize?: number;
}

/**
 * Yields the documents of a list, page after page. It fails at one that is damaged. What
 * is committed meanwhile may or may not be seen.
 */
export async function* eachDocument(stet: Stet, { pageSize = 0, ...query }: DocumentQuery): AsyncGenerator<Document> {
  let cursor = "";
  do {
    const page = await stet.documents.list({ ...query, page: { limit: pageSize, cursor } });
    const damaged = page.damaged[0];
    if (damaged !== undefined) {
      throw new Error(`document ${damaged.id} is damaged: ${damaged.detail}`);
    }
    yield* page.documents;
    cursor = page.nextCursor;
  } while (cursor !== "");
}

/** Returns the content of a document. The server names large ones by their blob. */
export async function documentContent(stet: Stet, document: Document): Promise<Uint8Array> {
  const { content } = document;
  switch (content.case) {
    case "data":
      return content.value;
    case "blob":
      return stet.blobs.get(content.value);
    default:
      throw new Error(`the server returned document ${document.name} without its content`);
  }
}

/**
 * Runs a change of documents, and runs it again while its commit fails because another
 * writer was faster. A change reads what it depends on each time, and names the versions
 * that it has read in its commit.
 */
export async function changeDocuments<T>(change: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await change();
    } catch (error) {
      if (attempt === attempts || !hasReason(error, "document-conflict")) {
        throw error;
      }
    }
    // Writers that wait for different times let one another through.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(100, 2 ** attempt)));
  }
}
