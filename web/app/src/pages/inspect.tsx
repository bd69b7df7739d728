import { query } from "../nav.ts";
import Inspector from "./inspector.tsx";

export default function InspectPage({ id }: { id: string }) {
  document.title = `${id.slice(0, 10)} · stet`;
  return <Inspector id={id} kind={query.value.get("kind") || "state"} page />;
}
