// Build of the web page: few files with content-hashed names, nothing that needs inline code.
import { defineConfig } from "vite";

export default defineConfig({
  base: "/ui/",
  publicDir: false,
  build: {
    outDir: "built",
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox128", "safari17.5"],
    // Modern browsers need neither polyfill nor preloads; one stylesheet keeps the CSP simple.
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    sourcemap: false,
    reportCompressedSize: true,
  },
});
