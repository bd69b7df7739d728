import type { ComponentChildren, Ref } from "preact";
import { useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Heights } from "./lib/heights.ts";

export interface ListHandle {
  /** show scrolls a row to the top of the view. */
  show: (index: number) => void;
  end: () => void;
  /** held reports whether the row that show showed is still held at the top. */
  held: () => boolean;
}

interface Props {
  count: number;
  estimate: number;
  render: (index: number) => ComponentChildren;
  keyOf?: (index: number) => string | number;
  label: string;
  /** "feed" for articles, "list" for rows. */
  role: "feed" | "list";
  class?: string;
  handle?: Ref<ListHandle>;
  onSpan?: (from: number, to: number) => void;
  /** stick keeps the end in view while rows are added there. */
  stick?: boolean;
  busy?: boolean;
}

const spare = 4;

/** List renders only the visible rows of a long list. Rows may have any height: they
 * are measured when shown, and visible rows stay in place when rows above differ from
 * their estimated height. */
export function List({ count, estimate, render, keyOf, label, role, class: c, handle, onSpan, stick, busy }: Props) {
  const outer = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const previous = useRef<Heights | undefined>(undefined);
  const heights = useMemo(() => {
    const h = new Heights(count, estimate, previous.current);
    previous.current = h;
    return h;
  }, [count, estimate]);
  const [, redraw] = useState(0);
  const view = useRef({ top: 0, height: 800, wanted: -1, atEnd: true });

  const sizes = useMemo(
    () =>
      new ResizeObserver((entries) => {
        const el = outer.current;
        if (!el) return;
        let shift = 0;
        let changed = false;
        for (const e of entries) {
          if (e.target === el) {
            view.current.height = el.clientHeight;
            changed = true;
            continue;
          }
          const i = Number((e.target as HTMLElement).dataset.index);
          const top = previous.current!.top(i);
          const delta = previous.current!.set(i, e.borderBoxSize[0].blockSize);
          if (delta !== 0) {
            changed = true;
            if (top < view.current.top) shift += delta;
          }
        }
        if (!changed) return;
        redraw((n) => n + 1);
        if (view.current.wanted >= 0) el.scrollTop = previous.current!.top(view.current.wanted);
        else if (shift !== 0) el.scrollTop = view.current.top += shift;
      }),
    [],
  );

  const [from, to] = heights.span(view.current.top, view.current.height, spare);

  useLayoutEffect(() => {
    const el = outer.current!;
    sizes.observe(el);
    view.current.height = el.clientHeight;
    return () => sizes.disconnect();
  }, []);

  useLayoutEffect(() => {
    for (const child of inner.current!.children) sizes.observe(child);
    const el = outer.current!;
    if (view.current.wanted >= 0) el.scrollTop = heights.top(view.current.wanted);
    else if (stick && view.current.atEnd) el.scrollTop = el.scrollHeight;
  });

  useEffect(() => onSpan?.(from, to), [from, to, count]);

  useImperativeHandle(
    handle ?? null,
    () => ({
      show(index) {
        view.current.wanted = Math.max(0, Math.min(index, count - 1));
        outer.current!.scrollTop = previous.current!.top(view.current.wanted);
        redraw((n) => n + 1);
      },
      end() {
        view.current.wanted = -1;
        view.current.atEnd = true;
        outer.current!.scrollTop = outer.current!.scrollHeight;
      },
      held: () => view.current.wanted >= 0,
    }),
    [count],
  );

  const release = () => (view.current.wanted = -1);
  const items = [];
  for (let i = from; i < to; i++) {
    items.push(
      <div key={keyOf ? keyOf(i) : i} data-index={i} class="item" role={role === "feed" ? "article" : "listitem"} aria-posinset={i + 1} aria-setsize={count}>
        {render(i)}
      </div>,
    );
  }
  return (
    <div
      ref={outer}
      class={`list ${c ?? ""}`}
      tabIndex={0}
      role={role}
      aria-label={label}
      aria-busy={busy ? true : undefined}
      onWheel={release}
      onTouchStart={release}
      onPointerDown={release}
      onKeyDown={(e) => {
        if (["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End", " "].includes(e.key)) release();
      }}
      onScroll={(e) => {
        const el = e.currentTarget;
        view.current.top = el.scrollTop;
        view.current.atEnd = el.scrollTop + el.clientHeight >= el.scrollHeight - 40;
        redraw((n) => n + 1);
      }}
    >
      <div class="spacer" role="presentation" style={{ height: `${heights.total}px` }}>
        <div ref={inner} class="window" role="presentation" style={{ transform: `translateY(${heights.top(from)}px)` }}>
          {items}
        </div>
      </div>
    </div>
  );
}
