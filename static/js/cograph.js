/* What script adds to pages that work without it: keyboard, live search, copy buttons, remembered folds, resting polls. */
(() => {
  "use strict";
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const typing = (node) => node instanceof Element && node.matches("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");

  /* ---- Keyboard ---------------------------------------------------------------------------------------------- */
  const items = () => $$("[data-item]").filter((item) => item.offsetParent !== null);
  const linkOf = (item) => $("a[href]", item);
  let prefix = "";

  const current = () => {
    const held = document.activeElement?.closest?.("[data-item]");
    return held || $("[data-item][data-current]");
  };

  const step = (by) => {
    const all = items();
    if (!all.length) return;
    const held = current();
    const at = held ? all.indexOf(held) : by > 0 ? -1 : all.length;
    const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
    all.forEach((item) => item.removeAttribute("data-current"));
    next.setAttribute("data-current", "");
    linkOf(next)?.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  };

  const keys = {
    "/": () => {
      const box = $("#cg-q") || $("#cg-quick");
      if (!box) return false;
      box.focus();
      box.select();
    },
    j: () => step(1),
    k: () => step(-1),
    Enter: () => {
      if (document.activeElement && document.activeElement !== document.body) return false;
      const link = current() && linkOf(current());
      if (!link) return false;
      link.click();
    },
    o: () => {
      const link = current() && linkOf(current());
      if (link) window.open(link.href, "_blank", "noopener");
    },
    e: () => {
      const why = current() && $("details.why", current());
      if (why) why.open = !why.open;
    },
    "[": () => $("a[rel=prev]")?.click(),
    "]": () => $("a[rel=next]")?.click(),
    g: () => { prefix = "g"; },
    "?": () => showKeys(),
  };

  const showKeys = () => {
    const dialog = $("#cg-keys");
    if (!dialog?.showModal) return false;
    if (!dialog.open) dialog.showModal();
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || typing(event.target)) return;
    if (event.key === "Escape") {
      $$("details.menu[open]").forEach((menu) => { menu.open = false; $("summary", menu).focus(); });
      return;
    }
    if ($("dialog[open]")) return;
    if (prefix === "g") {
      prefix = "";
      if (event.key === "h") { event.preventDefault(); $("a.brand")?.click(); }
      return;
    }
    const act = Object.hasOwn(keys, event.key) && keys[event.key];
    if (act && act() !== false) event.preventDefault();
  });

  document.addEventListener("focusin", (event) => {
    const item = event.target.closest?.("[data-item]");
    $$("[data-item][data-current]").forEach((other) => { if (other !== item) other.removeAttribute("data-current"); });
    if (item) item.setAttribute("data-current", "");
  });

  /* ---- Clicks: menus, keyboard list, copy, back --------------------------------------------------------------- */
  const say = (text) => { const region = $("#cg-said"); if (region) region.textContent = text; };

  const copied = async (button) => {
    const source = button.dataset.copy ? $(button.dataset.copy) : button.parentElement.querySelector("pre, code, textarea, input");
    const text = source ? (source.value ?? source.textContent) : "";
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(source);
      const selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      button.textContent = "Selected: press Ctrl+C";
    }
    say(button.textContent);
    button.classList.add("copied");
    setTimeout(() => { button.textContent = before; button.classList.remove("copied"); }, 2000);
  };

  /* The text at an address, for pages that show it as something else; the address is a link beside the button. */
  const copiedFrom = async (button) => {
    const before = button.textContent;
    try {
      const answer = await fetch(button.dataset.copies, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(answer.status);
      await navigator.clipboard.writeText(await answer.text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Could not be copied";
    }
    say(button.textContent);
    setTimeout(() => { button.textContent = before; }, 2000);
  };

  document.addEventListener("click", (event) => {
    $$("details.menu[open]").forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
    const keysLink = event.target.closest?.("[data-keys]");
    if (keysLink && showKeys() !== false) event.preventDefault();
    const button = event.target.closest?.("button.copy, button[data-copy]");
    if (button) copied(button);
    const fetched = event.target.closest?.("button[data-copies]");
    if (fetched) copiedFrom(fetched);
    if (event.target.closest?.("[data-close]")) event.target.closest("dialog")?.close();
  });

  document.addEventListener("change", (event) => {
    const field = event.target;
    if (field.matches?.("[data-submits]")) field.form.requestSubmit();
  });

  /* ---- Context: choosing a part marks its node in the picture, and the other way round ------------------------- */
  const mark = (number) => $$("[data-doc]").forEach((one) => one.toggleAttribute("data-chosen", one.dataset.doc === number));
  ["click", "focusin"].forEach((name) => document.addEventListener(name, (event) => {
    const held = event.target.closest?.("[data-doc]");
    if (held) mark(held.dataset.doc);
  }));
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-widens]");
    if (button) button.setAttribute("aria-pressed", String($(button.dataset.widens).toggleAttribute("data-wide")));
  });

  /* ---- Graph: arrows walk from node to node, buttons zoom ------------------------------------------------------- */
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  document.addEventListener("keydown", (event) => {
    const from = event.target.closest?.(".net .node");
    const way = from && arrows[event.key];
    if (!way || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const x = Number(from.dataset.x);
    const y = Number(from.dataset.y);
    let best = null;
    let least = Infinity;
    $$(".node", from.ownerSVGElement).forEach((node) => {
      const along = (node.dataset.x - x) * way[0] + (node.dataset.y - y) * way[1];
      const across = Math.abs((node.dataset.x - x) * way[1]) + Math.abs((node.dataset.y - y) * way[0]);
      const cost = along + 2 * across;
      if (along > 0 && cost < least) { least = cost; best = node; }
    });
    best?.focus();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-zoom]");
    const net = button && $(".net");
    if (!net) return;
    ["width", "height"].forEach((side) => net.setAttribute(side, String(Math.round(Number(net.getAttribute(side)) * Number(button.dataset.zoom)))));
    net.classList.add("zoomed");
  });

  /* ---- Filtering a list that is already on the page ----------------------------------------------------------- */
  document.addEventListener("input", (event) => {
    const field = event.target.closest?.("[data-filters]");
    if (!field) return;
    const root = $(field.dataset.filters);
    if (!root) return;
    const wanted = field.value.trim().toLowerCase();
    $$("li", root).forEach((entry) => { entry.hidden = wanted !== "" && !entry.textContent.toLowerCase().includes(wanted); });
    if (wanted) $$("details", root).forEach((fold) => { fold.open = true; });
  });

  /* ---- Things to do once for each new piece of page ----------------------------------------------------------- */
  const remember = (root) => $$("details[data-remember]", root).forEach((fold) => {
    const key = "cg-fold:" + fold.dataset.remember;
    const stored = localStorage.getItem(key);
    if (stored !== null && !fold.hasAttribute("data-forced")) fold.open = stored === "1";
    fold.addEventListener("toggle", () => localStorage.setItem(key, fold.open ? "1" : "0"));
  });

  /* Diagrams are drawn in a sandboxed frame each; the source stays on the page, open where drawing fails. */
  const DIAGRAMS = 20;
  const diagrams = (root) => $$(".prose pre.mermaid", root).slice(0, DIAGRAMS).forEach((block) => {
    if (block.closest(".diagram")) return;
    const source = block.textContent;
    const figure = document.createElement("figure");
    figure.className = "diagram";
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts");
    frame.title = "Diagram";
    frame.height = "220";
    frame.src = "/diagram";
    const fold = document.createElement("details");
    const words = document.createElement("summary");
    words.textContent = "Source of the diagram";
    fold.append(words);
    block.replaceWith(figure);
    fold.append(block);
    figure.append(frame, fold);
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark" || (document.documentElement.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    const listen = (event) => {
      if (event.source !== frame.contentWindow) return;
      const { diagram, height } = event.data || {};
      if (diagram === "ready") frame.contentWindow.postMessage({ source, dark }, "*");
      if (diagram === "drawn") { frame.height = String(Math.min(Math.max(Number(height) || 0, 40), 4000)); figure.dataset.drawn = ""; }
      if (diagram === "failed") { fold.open = true; frame.remove(); window.removeEventListener("message", listen); }
    };
    window.addEventListener("message", listen);
  });

  const copyButtons = (root) => $$(".prose pre, .source-file pre", root).forEach((block) => {
    if (block.parentElement.classList.contains("with-copy")) return;
    const frame = document.createElement("div");
    frame.className = "with-copy";
    block.replaceWith(frame);
    frame.append(block);
    if (!block.hasAttribute("tabindex")) block.tabIndex = 0;
    if (block.dataset.language) {
      const label = document.createElement("span");
      label.className = "lang";
      label.textContent = block.dataset.language;
      frame.append(label);
    }
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy this code");
    frame.append(button);
  });

  const contents = (root) => {
    const links = $$(".toc a[href^='#']", root);
    if (!links.length || !("IntersectionObserver" in window)) return;
    const byId = new Map(links.map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
    const marks = Array.from(byId.keys(), (id) => document.getElementById(id)).filter(Boolean);
    const update = () => {
      const limit = window.innerHeight / 4;
      const passed = marks.filter((mark) => mark.getBoundingClientRect().top < limit);
      const chosen = byId.get((passed.at(-1) || marks[0])?.id);
      links.forEach((link) => (link === chosen ? link.setAttribute("aria-current", "location") : link.removeAttribute("aria-current")));
    };
    const observer = new IntersectionObserver(update, { rootMargin: "0px 0px -60% 0px" });
    marks.forEach((mark) => observer.observe(mark));
    update();
  };

  /* #L10-L20: mark the lines and bring the first into view. */
  const lines = () => {
    const asked = /^#L(\d+)(?:-L?(\d+))?$/.exec(location.hash);
    if (!asked) return;
    const first = Number(asked[1]);
    const last = Math.min(Number(asked[2] || first), first + 5000);
    $$(".lines .marked, .source .marked").forEach((row) => row.classList.remove("marked"));
    for (let line = first; line <= last; line += 1) document.getElementById("L" + line)?.classList.add("marked");
    document.getElementById("L" + first)?.scrollIntoView({ block: "center" });
  };
  window.addEventListener("hashchange", lines);

  /* The gutter of a source file is a picture of its numbers; a click in it points the address at the line. */
  document.addEventListener("click", (event) => {
    const line = event.target.closest?.("pre.source .line[id]");
    if (!line || String(window.getSelection())) return;
    if (event.clientX - line.getBoundingClientRect().left > 64) return;
    const from = /^#L(\d+)/.exec(location.hash);
    location.hash = event.shiftKey && from ? "L" + from[1] + "-" + line.id : line.id;
  });

  /* Marks the blocks of a rendered text that stand on the lines of a passage, and brings the first into view. */
  const passages = (root) => $$("[data-passage]", root).forEach((text) => {
    const [first, last] = text.dataset.passage.split("-").map(Number);
    const blocks = $$("[data-line]", text).filter((block) => {
      const begin = Number(block.dataset.line);
      const end = Number(block.dataset.end || begin);
      return begin >= first && end <= last;
    });
    blocks.filter((block) => !block.parentElement.closest(".marked")).forEach((block) => block.classList.add("marked"));
    const first_block = $(".marked", text);
    const show = () => { if (first_block) text.scrollTop = first_block.offsetTop - text.offsetTop - 40; };
    show();
    text.closest("details")?.addEventListener("toggle", show);
  });
  /* The marked lines of a passage stand in view without moving the page. */
  const frames = (root) => $$(".lines.passage-frame", root).forEach((frame) => {
    const row = $("tr.marked", frame);
    if (row) frame.scrollTop = Math.max(0, row.offsetTop - 60);
  });

  /* A file that is dropped on a form is a file that was chosen in its field. */
  const drops = (root) => $$("[data-drop]", root).forEach((zone) => {
    const field = $("input[type=file]", zone);
    if (!field) return;
    ["dragenter", "dragover"].forEach((name) => zone.addEventListener(name, (event) => { event.preventDefault(); zone.setAttribute("data-over", ""); }));
    ["dragleave", "drop"].forEach((name) => zone.addEventListener(name, (event) => { event.preventDefault(); zone.removeAttribute("data-over"); }));
    zone.addEventListener("drop", (event) => {
      if (!event.dataTransfer.files.length) return;
      field.files = event.dataTransfer.files;
      field.dispatchEvent(new Event("change", { bubbles: true }));
    });
  });

  const reveal = (root) => $$("[data-widens], [data-zoom], [data-copies]", root).forEach((button) => { button.hidden = false; });

  const prepare = (root) => { reveal(root); remember(root); diagrams(root); copyButtons(root); contents(root); passages(root); frames(root); drops(root); };
  document.addEventListener("DOMContentLoaded", () => { prepare(document); lines(); });
  document.addEventListener("htmx:afterSwap", (event) => prepare(event.target));

  /* ---- htmx ----------------------------------------------------------------------------------------------------- */
  document.addEventListener("htmx:beforeRequest", (event) => {
    const asking = event.detail.elt;
    if (document.hidden && asking.closest("[data-polls]")) event.preventDefault();
  });
  document.addEventListener("htmx:confirm", (event) => {
    /* Under two characters nothing is asked while typing; sending the form by hand always asks. */
    const form = event.detail.elt;
    if (!form.matches("form[data-live]") || event.detail.triggeringEvent?.type === "submit") return;
    if (($("input[type=search]", form)?.value ?? "").trim().length < 2) event.preventDefault();
  });
  const failed = (event, words) => {
    const place = event.detail.target;
    if (!place || event.detail.elt.closest("[data-polls]")) return;
    const note = document.createElement("p");
    note.className = "failed";
    note.setAttribute("role", "alert");
    note.textContent = words + " The rest of this page is unchanged. Try again, or reload the page.";
    $$(".failed", place).forEach((older) => older.remove());
    place.prepend(note);
  };
  document.addEventListener("htmx:responseError", (event) => failed(event, "This part was not loaded: the server answered " + event.detail.xhr.status + "."));
  document.addEventListener("htmx:sendError", (event) => failed(event, "This part was not loaded: the server was not reached."));
  document.addEventListener("htmx:xhr:progress", (event) => {
    const bar = $("progress[data-sending]", event.target);
    if (!bar || !event.detail.lengthComputable) return;
    bar.hidden = false;
    bar.max = event.detail.total;
    bar.value = event.detail.loaded;
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const form = event.detail.elt;
    if (!form.matches("form[data-sends]")) return;
    const bar = $("progress[data-sending]", form);
    if (bar) bar.hidden = true;
    if (event.detail.successful) form.reset();
  });
  /* SECURITY: a page kept by the browser must not come back after signing out; ask the server again. */
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
})();
