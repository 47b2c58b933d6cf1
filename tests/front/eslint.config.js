import js from "@eslint/js";
import globals from "globals";

// What front_end.py can resolve: named imports of files.
const importRules = [
  { selector: "ImportExpression:not([source.type='CallExpression'],[source.type='MemberExpression'])", message: "Modules are imported at their top." },
  { selector: "ImportNamespaceSpecifier, ImportDefaultSpecifier, ExportAllDeclaration", message: "Import names from a file." },
  { selector: "CallExpression[callee.object.name='JSON'][callee.property.name='stringify']", message: "Compare by identity." },
];

export default [
  js.configs.recommended,
  {
    files: ["famnb/widget/front/{runtime,parts,tools}/**/*.js"],
    languageOptions: { ecmaVersion: 2023, sourceType: "module", globals: globals.browser },
    rules: {
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-restricted-syntax": ["error", ...importRules],
      "max-lines-per-function": ["error", { max: 80, skipComments: true }],
      eqeqeq: "error",
      "prefer-const": "error",
    },
  },
];
