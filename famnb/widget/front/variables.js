// The values of a prompt's variables: a small table, of which one row is sent, or all of them side by side.

import { button, make } from "./dom.js";

/**
 * Draws the table; `change(rows, row)` is called with each edit, `runAll()` by the button.
 * @param {(rows: object[], row: number) => void} change @param {() => void} runAll
 */
export function drawVariables(change, runAll) {
  let names = [];
  let rows = [{}];
  let chosen = 0;
  const table = make("table", "famnb-table");
  const running = button("", "Run all rows", "", runAll);
  running.title = "Send each row, side by side on a board below";
  const adding = button("", "Add a row", "", () => {
    rows.push({});
    draw();
    report();
    table.querySelector("tbody tr:last-child input.famnb-input")?.focus();
  });
  const element = make("div", "famnb-variables", table, make("div", "famnb-bar", adding, running));
  const report = () => change(rows, chosen);
  const isFilled = (row) => names.some((name) => row[name]);
  const settle = () => {
    element.hidden = !names.length;
    running.disabled = rows.filter(isFilled).length < 2;
  };
  const drawRow = (row, index) => {
    const pick = Object.assign(make("input"), { type: "radio", name: "famnb-row", checked: index === chosen });
    pick.setAttribute("aria-label", `Send row ${index + 1}`);
    pick.addEventListener("change", () => {
      chosen = index;
      for (const other of table.querySelectorAll("input[type=radio]")) other.checked = other === pick;
      report();
    });
    const cells = names.map((name) => {
      const input = Object.assign(make("input", "famnb-input"), { value: row[name] ?? "", autocomplete: "off" });
      input.setAttribute("aria-label", `${name}, row ${index + 1}`);
      input.addEventListener("input", () => {
        row[name] = input.value;
        settle();
        report();
      });
      return make("td", "", input);
    });
    const removing = button("famnb-icon", `Remove row ${index + 1}`, "", () => {
      rows.splice(index, 1);
      if (!rows.length) rows.push({});
      chosen = Math.min(chosen, rows.length - 1);
      draw();
      report();
    });
    removing.textContent = "×";
    return make("tr", "", make("td", "", pick), ...cells, make("td", "", removing));
  };
  const draw = () => {
    const heads = ["send", ...names.map((name) => `{${name}}`), ""].map((text) => make("th", "", text));
    const active = table.querySelector("input.famnb-input:focus");
    const { ariaLabel, selectionStart, selectionEnd } = active ?? {};
    table.replaceChildren(make("thead", "", make("tr", "", ...heads)), make("tbody", "", ...rows.map(drawRow)));
    // A variable that was written meanwhile adds a column: whoever fills in another one goes on there.
    const twin = active && [...table.querySelectorAll("input.famnb-input")].find((input) => input.ariaLabel === ariaLabel);
    twin?.focus({ preventScroll: true });
    twin?.setSelectionRange(selectionStart, selectionEnd);
    settle();
  };
  return {
    element,
    /** Shows the variables; the rows only if no edit of them `isUnheard`. */
    tell: (variables, isUnheard) => {
      const said = variables.rows.length ? variables.rows : [{}];
      const isNew = JSON.stringify(variables.names) !== JSON.stringify(names);
      const isHeld = isUnheard || element.querySelector(":focus");
      const differs = JSON.stringify(said) !== JSON.stringify(rows) && !isHeld;
      if (differs) {
        rows = said.map((row) => ({ ...row }));
        chosen = variables.row;
      }
      names = variables.names;
      if (isNew || differs) draw();
      else settle();
    },
  };
}
