import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";

/** Asks again until the server is there: it may be restarting. Messages have ids, so one that
 * was sent twice counts once. */
async function patient(input, init) {
  for (;;) {
    try {
      const response = await fetch(input, init);
      if (response.status < 500) return response;
    } catch (error) {
      if (init?.signal?.aborted) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

function Chat({ id, stored }) {
  const [input, setInput] = useState("");
  const asked = useRef(); // the message whose answer is shown
  const { messages, sendMessage, status, error, resumeStream } = useChat({
    id,
    messages: stored,
    // The last question has no answer yet: follow the one that is being written.
    resume: stored.at(-1)?.role === "user",
    transport: new DefaultChatTransport({
      fetch: patient,
      prepareSendMessagesRequest: ({ id, messages }) => ({ body: { id, message: messages.at(-1) } }),
      prepareReconnectToStreamRequest: ({ id }) => ({ api: `/api/chat/${id}/stream/${asked.current}` }),
    }),
  });
  asked.current = messages.findLast(({ role }) => role === "user")?.id;

  // The connection was lost in the middle of an answer: the SDK builds the message again from
  // the beginning of the stream, so nothing is lost and nothing is there twice.
  useEffect(() => {
    if (status === "error") void resumeStream();
  }, [status]);

  return (
    <>
      {messages.map((message) => (
        <p key={message.id} className={message.role}>
          {message.parts.map((part) => (part.type === "text" ? part.text : ""))}
        </p>
      ))}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void sendMessage({ text: input });
          setInput("");
        }}
      >
        <input autoFocus value={input} onChange={(event) => setInput(event.target.value)} placeholder="count to 20" disabled={status !== "ready"} />
      </form>
      <output data-status={status}>{error?.message}</output>
    </>
  );
}

const id = new URLSearchParams(location.search).get("chat") ?? crypto.randomUUID();
history.replaceState(null, "", `?chat=${id}`);
const { messages } = await (await patient(`/api/chat/${id}`)).json();
createRoot(document.getElementById("root")).render(<Chat id={id} stored={messages} />);
