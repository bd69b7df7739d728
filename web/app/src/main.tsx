import { signal } from "@preact/signals";
import { render } from "preact";
import * as api from "./api.ts";
import { everywhere, groups, useKeys } from "./keys.ts";
import { lazy } from "./lazy.tsx";
import { to } from "./lib/route.ts";
import { lost, useEvery } from "./load.ts";
import { go, query, route } from "./nav.ts";
import { ConversationPage } from "./pages/conversation.tsx";
import { HomePage } from "./pages/home.tsx";
import { Login } from "./pages/login.tsx";
import * as session from "./session.ts";
import "./style.css";
import { cycleTheme, theme } from "./theme.ts";
import { Dialog, Menu, Missing, Notices } from "./ui.tsx";

// Other views are loaded on demand.
const later = {
  search: lazy(() => import("./pages/search.tsx")),
  storage: lazy(() => import("./pages/storage.tsx")),
  operations: lazy(() => import("./pages/operations.tsx")),
  compare: lazy(() => import("./pages/compare.tsx")),
  live: lazy(() => import("./pages/live.tsx")),
  inspect: lazy(() => import("./pages/inspect.tsx")),
  try: lazy(() => import("./pages/attempts.tsx")),
};

const helping = signal(false);

function App() {
  const at = route();
  useKeys(everywhere, [
    { keys: "?", about: "Show the keys", run: () => (helping.value = !helping.value) },
    { keys: "/", about: "Search", run: () => focusSearch() },
    { keys: "g h", about: "Go to the conversations", run: () => go("/") },
    { keys: "g t", about: "Go to storage", run: () => go("/storage") },
    { keys: "g o", about: "Go to operations", run: () => go("/operations") },
    { keys: "g c", about: "Go to compare", run: () => go("/compare") },
    { keys: "d", about: "Dark, light or system theme", run: cycleTheme },
  ]);
  return (
    <>
      <a class="skip" href="#main" onClick={focusMain}>
        Skip to the content
      </a>
      <Header page={at.page} />
      <main id="main" tabIndex={-1} class={at.page}>
        <Page key={at.page + ("id" in at ? at.id : "")} />
      </main>
      <Lost />
      <Notices />
      {helping.value && <Help />}
    </>
  );
}

/** Lost reports that the server is unreachable and the page may be out of date. */
function Lost() {
  const problem = lost.value;
  // For pages that do not poll, this detects that the server is back.
  useEvery(3000, () => lost.value && api.store.info({}).then(() => (lost.value = null), () => {}));
  return (
    <div class="lost" role="status">
      {problem && (
        <p>
          <b>{problem.title}.</b> This page may be out of date. {problem.help}
        </p>
      )}
    </div>
  );
}

function focusMain(e: Event): void {
  e.preventDefault();
  document.getElementById("main")!.focus();
}

function focusSearch(): void {
  document.querySelector<HTMLInputElement>("header input[type=search]")?.focus();
}

function Page() {
  const at = route();
  switch (at.page) {
    case "home":
      return <HomePage />;
    case "conversation":
      return <ConversationPage id={at.id} tab={at.tab} />;
    case "live":
      return <later.live id={at.id} />;
    case "inspect":
      return <later.inspect id={at.id} />;
    case "try":
      return <later.try id={at.id} />;
    case "missing":
      return (
        <Missing what="page" help="The address may be mistyped, or from another version of stet." />
      );
    default: {
      const Other = later[at.page];
      return <Other />;
    }
  }
}

const names: Record<string, string> = { home: "Conversations", compare: "Compare", operations: "Operations", storage: "Storage" };

function Header({ page }: { page: string }) {
  const link = (name: string, href: string, text: string) => (
    <a key={name} href={href} aria-current={page === name ? "page" : undefined}>
      {text}
    </a>
  );
  const links = () => [link("home", "/", names.home), link("compare", "/compare", names.compare), link("operations", "/operations", names.operations), link("storage", "/storage", names.storage)];
  return (
    <header class="top">
      <a href="/" class="brand" aria-label="stet, all conversations">
        stet
      </a>
      <nav aria-label="Pages">
        {links()}
        {/* One button where there is no room for all of them. */}
        <Menu label={names[page] ?? "Pages"}>{links()}</Menu>
      </nav>
      <form
        role="search"
        onSubmit={(e) => {
          e.preventDefault();
          const field = e.currentTarget.elements.namedItem("q") as HTMLInputElement;
          if (field.value.trim()) go(to.search(field.value.trim()));
        }}
      >
        <input type="search" name="q" placeholder="Search everything" aria-label="Search everything" value={page === "search" ? (query.value.get("q") ?? "") : ""} autocomplete="off" />
        <kbd aria-hidden="true">/</kbd>
      </form>
      <button type="button" class="quiet" onClick={cycleTheme} aria-label={`Colours: ${theme.value}`} title={`Colours: ${theme.value} (d)`}>
        {theme.value === "dark" ? "◐" : theme.value === "light" ? "◑" : "◒"}
      </button>
      <button type="button" class="quiet" onClick={() => (helping.value = true)} aria-label="Keys" title="Keys (?)">
        ?
      </button>
    </header>
  );
}

function Help() {
  const close = () => (helping.value = false);
  return (
    <Dialog title="Keys" onClose={close}>
      <div class="keys">
        {groups.value
          .filter((g) => g.name !== "Dialog" && g.keys.length > 0)
          .map((g) => (
            <section key={g.name}>
              <h3>{g.name}</h3>
              <dl>
                {g.keys.map((k) => (
                  <div key={k.keys}>
                    <dt>
                      {k.keys.split(" ").map((part) => (part === "or" ? " or " : <kbd>{part}</kbd>))}
                    </dt>
                    <dd>{k.about}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
      </div>
    </Dialog>
  );
}

/** Door shows the page if the server accepts the token. */
function Door() {
  switch (session.state.value) {
    case "open":
      return <App />;
    case "closed":
      return <Login />;
  }
  return null;
}

render(<Door />, document.getElementById("app")!);
void session.start(api.check);
