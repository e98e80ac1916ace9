import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["dist/", "**/node_modules/"] },
  js.configs.recommended,
  {
    files: ["**/*.js", "**/*.mjs"],
    languageOptions: { globals: { ...globals.browser, ...globals.node, ...globals.serviceworker, Go: "readonly" } },
    rules: {
      "no-control-regex": "off", // names of files are freed of them
      "no-unused-vars": ["error", { argsIgnorePattern: "^_", caughtErrors: "none" }],
    },
  },
];
