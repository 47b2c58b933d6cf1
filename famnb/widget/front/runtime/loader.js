// What each tool is sent as its `_esm`: it imports the tool's modules, which are sent once a kernel as the text of a
// model that all tools refer to. Where there is no such model, the modules are written into the first line of code.
//
//   widget's model ── get ── reference ── widget_manager ── text ──┬── style: into the page
//                                                                  └── modules: a blob URL each ── import of the last

const MODULES = null; // [name, source] each, imports first (front_end.py: read_modules)

// By their text, so that a newer famnb in another kernel of the same page has others.
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

const makeUrl = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));

// The URLs stay: a module that is imported by two tools is loaded once because both name the same URL.
function importLast(modules) {
  const urls = new Map();
  for (const [name, source] of modules) {
    const linked = source.replace(/from "front:([^"]+)"/g, (_, imported) => `from "${urls.get(imported)}"`);
    urls.set(name, loadOnce(`${linked}\n//# sourceURL=famnb/${name}`, makeUrl));
  }
  return import([...urls.values()].at(-1));
}

export default () => {
  let front;
  return {
    async initialize(context) {
      const { model } = context;
      if (!MODULES) loadOnce(await textOf(model, "_style"), addStyle);
      const modules = MODULES ?? JSON.parse(await textOf(model, "_modules"));
      front = (await importLast(modules)).default();
      return front.initialize(context);
    },
    render: (context) => front.render(context),
  };
};
