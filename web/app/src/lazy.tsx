import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { problemOf } from "./api.ts";
import { Trouble, Waiting } from "./ui.tsx";

/** lazy is a component whose code is loaded when it is first shown. */
export function lazy<P extends object>(load: () => Promise<{ default: ComponentType<P> }>): ComponentType<P> {
  let known: ComponentType<P> | undefined;
  return (props: P) => {
    const [page, setPage] = useState<ComponentType<P> | undefined>(() => known);
    const [failed, setFailed] = useState<unknown>();
    useEffect(() => {
      if (known) return;
      load().then((m) => {
        known = m.default;
        setPage(() => m.default);
      }, setFailed);
    }, []);
    if (failed) return <Trouble whole problem={problemOf(failed)} again={() => location.reload()} />;
    if (!page) return <Waiting />;
    const Page = page;
    return <Page {...props} />;
  };
}
