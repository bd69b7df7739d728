import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { pruned } from "./prune.ts";

const gen = fileURLToPath(new URL("../../clients/typescript/src/gen", import.meta.url));

// The built files are committed: their names must not change with their contents,
// and the same sources must give the same bytes.
export default defineConfig({
  base: "/assets/",
  plugins: [pruned(gen)],
  resolve: {
    alias: { "@gen": gen },
    // The generated code lies outside of this directory; it must use our copy.
    dedupe: ["@bufbuild/protobuf"],
  },
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    target: "es2022",
    outDir: "../dist",
    emptyOutDir: true,
    assetsDir: "",
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    sourcemap: false,
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: "app.js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
});
