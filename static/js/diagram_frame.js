/* Runs alone in the sandboxed frame: the source of one diagram comes in, its height goes out. */
(() => {
  "use strict";
  const tell = (message) => window.parent.postMessage(message, "*");
  const draw = async ({ source, dark }) => {
    try {
      /* SECURITY: labels are text, never markup; nothing of a diagram can bind a click. */
      window.mermaid.initialize({ startOnLoad: false, securityLevel: "strict", htmlLabels: false, flowchart: { htmlLabels: false }, theme: dark ? "dark" : "neutral", fontFamily: "system-ui, sans-serif", maxTextSize: 50000, suppressErrorRendering: true });
      const { svg } = await window.mermaid.render("diagram", source);
      document.body.innerHTML = svg;
      const drawn = document.querySelector("svg");
      if (!drawn) throw new Error("nothing drawn");
      const box = drawn.viewBox.baseVal;
      const width = document.documentElement.clientWidth;
      const scale = box.width > width ? width / box.width : 1;
      tell({ diagram: "drawn", height: Math.ceil((box.height || drawn.getBoundingClientRect().height) * scale) + 16 });
    } catch (error) {
      tell({ diagram: "failed", reason: String(error && error.message).slice(0, 200) });
    }
  };
  window.addEventListener("message", (event) => {
    if (event.source !== window.parent || typeof event.data?.source !== "string") return;
    draw(event.data);
  });
  window.mermaid?.initialize({ startOnLoad: false });
  tell({ diagram: "ready" });
})();
