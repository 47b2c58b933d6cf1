// Keeps the notebook from taking the keys that are meant for controls in boxes of the class famnb-keys.

export default {
  render() {
    const keys = ".famnb-keys :is(select, button, input[type=checkbox])";
    const keep = ({ target }) => {
      if (!target.matches?.(keys)) return;
      target.dataset.lmSuppressShortcuts = "true";
      if (target.matches(".widget-toggle-button")) {
        target.setAttribute("aria-expanded", target.classList.contains("mod-active"));
      }
    };
    // The lab marks a toggle as pressed only after the click has been handled.
    const later = (event) => requestAnimationFrame(() => keep(event));
    document.addEventListener("focusin", keep);
    document.addEventListener("click", later);
    return () => {
      document.removeEventListener("focusin", keep);
      document.removeEventListener("click", later);
    };
  },
};
