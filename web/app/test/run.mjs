// Bundles the tests of this directory and runs them: node test/run.mjs OUT
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const gen = fileURLToPath(new URL("../../../clients/typescript/src/gen", import.meta.url));
const out = process.argv[2];
const names = readdirSync(here).filter((n) => n.endsWith(".test.ts"));
await build({
  entryPoints: names.map((n) => here + n),
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node18",
  outdir: out,
  outExtension: { ".js": ".mjs" },
  alias: { "@gen": gen },
  nodePaths: [here + "../node_modules"],
  logLevel: "error",
});
const run = spawnSync(process.execPath, ["--test", ...names.map((n) => `${out}/${n.replace(/\.ts$/, ".mjs")}`)], { stdio: "inherit", env: { ...process.env, STET_GEN: gen, TZ: "UTC" } });
process.exit(run.status ?? 1);
