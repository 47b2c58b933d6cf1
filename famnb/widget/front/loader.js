// What each widget is sent in the place of its front end. That is sent once, as the text of a model that all widgets of
// a kernel refer to, and imported once by the page.
//
//   widget's model ── get ── reference ── widget_manager ── text ──┬── style: into the page
//                                                                  └── module: imported ── the tool's own front end

// By their text, so that a newer famnb in another kernel of the same page has its own.
const loaded = (globalThis[Symbol.for("famnb.front")] ??= new Map());

async function textOf(model, trait) {
  const shared = await model.widget_manager.get_model(model.get(trait).replace("IPY_MODEL_", ""));
  return shared.get("text");
}

function loadOnce(text, load) {
  if (!loaded.has(text)) loaded.set(text, load(text));
  return loaded.get(text);
}

function addStyle(text) {
  const style = document.createElement("style");
  style.textContent = text;
  document.head.append(style);
  return style;
}

function importModule(text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  return import(url).finally(() => URL.revokeObjectURL(url));
}

export default () => {
  let front;
  return {
    async initialize(context) {
      const [style, module] = await Promise.all(["_front_style", "_front_module"].map((trait) => textOf(context.model, trait)));
      loadOnce(style, addStyle);
      front = (await loadOnce(module, importModule)).default();
      return front.initialize(context);
    },
    render: (context) => front.render(context),
  };
};
