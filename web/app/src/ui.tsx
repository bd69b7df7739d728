import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "./api.ts";
import { useKeys } from "./keys.ts";
import { ago, clock, dayName, stamp } from "./lib/format.ts";

/** now advances, so that relative times are updated. */
export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 10_000);

/** Time shows a time relative to now, with the full time as a tooltip. */
export function Time({ ms, plain }: { ms: number | bigint; plain?: boolean }) {
  const t = Number(ms);
  if (!t) return null;
  const text = plain ? `${dayName(t, now.value) === "Today" ? "" : dayName(t, now.value) + " "}${clock(t)}` : ago(t, now.value);
  return (
    <time dateTime={new Date(t).toISOString()} title={stamp(t)}>
      {text}
    </time>
  );
}

/** Copy copies a text to the clipboard. */
export function Copy({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  return (
    <button
      type="button"
      class="copy"
      aria-label={`Copy ${label}`}
      title={`Copy ${label}`}
      onClick={async (e) => {
        e.preventDefault();
        e.stopPropagation();
        await copyText(text);
        setDone(true);
        setTimeout(() => setDone(false), 1200);
      }}
    >
      {done ? "copied" : "copy"}
    </button>
  );
}

async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without permission, or outside of a secure context, use the old way.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** Trouble shows an error and what may help; whole means that it replaces the whole
 * page. */
export function Trouble({ problem, again, whole }: { problem: Problem; again?: () => void; whole?: boolean }) {
  const Title = whole ? "h1" : "h2";
  return (
    <div class="trouble" role="alert">
      <Title>{problem.title}</Title>
      <p class="detail">{problem.detail}</p>
      <p>{problem.help}</p>
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Menu is a button that shows more; a choice, Escape and a click elsewhere close it. */
export function Menu({ label, children }: { label: string; children: ComponentChildren }) {
  const ref = useRef<HTMLDetailsElement>(null);
  const close = () => (ref.current!.open = false);
  useEffect(() => {
    const outside = (e: Event) => {
      if (ref.current?.open && !ref.current.contains(e.target as Node)) close();
    };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, []);
  return (
    <details class="menu" ref={ref} onKeyDown={(e) => e.key === "Escape" && close()}>
      <summary class="button">{label}</summary>
      <div class="menu-items" onClick={close}>
        {children}
      </div>
    </details>
  );
}

/** Missing is shown where an address leads nowhere. */
export function Missing({ what, help }: { what: string; help: string }) {
  return (
    <Empty whole title={`This ${what} does not exist`}>
      <p>{help}</p>
      <p>
        <a href="/">All conversations</a> · <a href="/search">Search everything</a>
      </p>
    </Empty>
  );
}

/** Empty is shown in place of missing content, and says what to do. */
export function Empty({ title, children, whole }: { title: string; children?: ComponentChildren; whole?: boolean }) {
  const Title = whole ? "h1" : "h2";
  return (
    <div class="empty">
      <Title>{title}</Title>
      {children}
    </div>
  );
}

/** Waiting appears after a delay, so that nothing flickers. */
export function Waiting({ what = "Loading" }: { what?: string }) {
  return (
    <p class="waiting" role="status">
      {what}…
    </p>
  );
}

/** Lines shows added and removed lines. */
export function Lines({ added, removed }: { added: number; removed: number }) {
  if (!added && !removed) return null;
  return (
    <span class="lines">
      {added > 0 && <span class="add">+{added}</span>} {removed > 0 && <span class="del">−{removed}</span>}
    </span>
  );
}

/** Command is a command line to copy. */
export function Command({ text }: { text: string }) {
  return (
    <span class="command">
      <code>{text}</code>
      <Copy text={text} label="command" />
    </span>
  );
}

/** Dialog is a sheet above the page. Escape closes it, and the focus goes back. */
export function Dialog({ title, onClose, children, wide }: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current!;
    const before = document.activeElement as HTMLElement | null;
    dialog.showModal();
    return () => {
      dialog.close();
      before?.focus?.();
    };
  }, []);
  useKeys("Dialog", [{ keys: "Escape", about: "Close", run: onClose }]);
  return (
    <dialog
      ref={ref}
      class={wide ? "sheet wide" : "sheet"}
      aria-labelledby="sheet-title"
      onCancel={(e) => {
        e.preventDefault();
        onClose();
      }}
      onClick={(e) => {
        if (e.target === ref.current) onClose();
      }}
    >
      <div class="sheet-body">
        <header>
          <h2 id="sheet-title">{title}</h2>
          <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
            ✕
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

interface Notice {
  text: string;
  action?: { label: string; run: () => void };
  bad?: boolean;
}

export const notice = signal<Notice | null>(null);
let noticeTimer = 0;

/** say shows a notice, optionally with an action. */
export function say(n: Notice, ms = 12_000): void {
  notice.value = n;
  clearTimeout(noticeTimer);
  noticeTimer = window.setTimeout(() => (notice.value = null), ms);
}

/** Notices shows the last notice. */
export function Notices() {
  const n = notice.value;
  return (
    <div class="notices" role="status" aria-live="polite">
      {n && (
        <div class={n.bad ? "notice bad" : "notice"}>
          <span>{n.text}</span>
          {n.action && (
            <button
              type="button"
              onClick={() => {
                notice.value = null;
                n.action!.run();
              }}
            >
              {n.action.label}
            </button>
          )}
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => (notice.value = null)}>
            ✕
          </button>
        </div>
      )}
    </div>
  );
}

/** Html shows HTML that the server has sanitized. */
export function Html({ html, as: As = "div", class: c }: { html: string; as?: "div" | "code" | "pre"; class?: string }) {
  return <As class={c} dangerouslySetInnerHTML={{ __html: html }} />;
}
