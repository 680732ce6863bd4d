// A search button and dialog for any page of a site; "/" opens it. The first search loads the index.
import { mount } from "./page.js";

const base = new URL("./", import.meta.url);
const style = document.createElement("style");
style.textContent = `
  #sparserank-open { background: none; border: 1px solid currentColor; border-radius: .25rem; color: inherit; cursor: pointer;
    font: inherit; margin: 0 .5rem; padding: .25rem .75rem; }
  #sparserank { border: 0; border-radius: .5rem; box-shadow: 0 0 2rem #0006; color: CanvasText; background: Canvas; font-size: 16px;
    max-height: 85vh; overflow: auto; padding: 1rem; width: min(44rem, 90vw); }
  #sparserank input { box-sizing: border-box; font: inherit; padding: .5rem .75rem; width: 100%; }
  #sparserank ol { list-style: none; margin: 0; padding: 0; }
  #sparserank li { margin: 1rem 0; overflow-wrap: anywhere; }
  #sparserank p { margin: .25rem 0; }
  #sparserank mark { background: #ffe08a; color: #000; }`;
document.head.append(style);

const dialog = document.createElement("dialog");
dialog.id = "sparserank";
const place = document.createElement("div");
dialog.append(place);
document.body.append(dialog);
let mounted;

async function open() {
  dialog.showModal();
  mounted ??= mount(place, { base, link: ({ metadata }) => new URL(`../${metadata.url}`, base).href });
  (await mounted).input.focus();
}

const button = document.createElement("button");
button.id = "sparserank-open";
button.type = "button";
button.textContent = "Search";
button.addEventListener("click", open);
(document.querySelector(".md-header__inner, .navbar .container, .sphinxsidebarwrapper, header, nav") ?? document.body).append(button);
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || typing || dialog.open || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  open();
});
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
