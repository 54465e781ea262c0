
'use strict';
(() => {
  const byId = (id) => document.getElementById(id);
  const box = byId('filters');
  const index = byId('index');
  if (!box || !index) return;
  const rows = [...index.tBodies[0].rows];
  const text = byId('f-text');
  const title = byId('f-title');
  const order = byId('f-order');
  const sections = [...document.querySelectorAll('section.issue')];
  const listOf = (element, place) => ((element && element.dataset[place]) || '').split('\n').filter(Boolean);
  // What is only in the sections: a text of others, which becomes text again.
  for (const [id, place] of [['f-label', 'l'], ['f-branch', 'b']]) {
    const choice = byId(id);
    const values = [...new Set(sections.flatMap((section) => listOf(section, place)))].sort();
    for (const value of values) choice.append(new Option(value, value));
    if (!values.length) choice.parentElement.remove();
  }
  const choices = [...box.querySelectorAll('select')].filter((choice) => choice !== order);
  const attention = byId('f-attention');
  const count = byId('f-count');
  const none = byId('f-none');
  // What is about an issue outside the table: what needs attention, the bars, the last steps.
  const others = [...document.querySelectorAll('[data-i]')];
  const sectionOf = (row) => byId('i-' + row.dataset.k);
  const said = new Map();
  const words = (row) => {
    if (!said.has(row)) {
      const section = sectionOf(row);
      said.set(row, (row.textContent + ' ' + (section ? section.textContent : '')).toLowerCase());
    }
    return said.get(row);
  };
  const has = (row, { dataset: { in: place }, value }) => {
    if (place === 'p') return row.cells[3].textContent === value;
    if (place === 'l' || place === 'b') return listOf(sectionOf(row), place).includes(value);
    return (row.dataset[place] || '').split(' ').includes(value);
  };
  const titleOf = ({ cells: [cell] }) => (cell.title || cell.textContent).toLowerCase();
  const fits = (row, chosen, part, wanted) =>
    chosen.every((choice) => has(row, choice)) &&
    titleOf(row).includes(part) &&
    wanted.every((word) => words(row).includes(word));
  const sort = () => {
    const sorted = order.value ? [...rows].sort((a, b) => a.dataset.k.localeCompare(b.dataset.k, 'en', { numeric: true })) : rows;
    index.tBodies[0].append(...sorted);
  };
  const apply = () => {
    const chosen = choices.filter((choice) => choice.value);
    const fitting = new Set();
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const part = title.value.trim().toLowerCase();
    for (const row of rows) {
      const isShown = fits(row, chosen, part, wanted);
      if (isShown) fitting.add(row.dataset.k);
      if (row.hidden === isShown) {
        row.hidden = !isShown;
        const section = sectionOf(row);
        if (section) section.hidden = !isShown;
      }
    }
    const shown = fitting.size;
    let needing = 0;
    for (const one of others) {
      const isNeed = 'n' in one.dataset;
      one.hidden = !fitting.has(one.dataset.i) || (isNeed && Boolean(attention.value) && !has(one, attention));
      needing += isNeed && !one.hidden;
    }
    const narrow = chosen.length + wanted.length + part.length > 0;
    document.documentElement.classList.toggle('filtered', narrow);
    if (none) none.hidden = needing > 0;
    const rest = document.querySelector('details.more');
    if (rest && narrow && rest.querySelector('[data-n]:not([hidden])')) rest.open = true;
    const all = rows.length;
    const number = (n) => n.toLocaleString('en-US');
    count.textContent =
      shown === all ? `${number(all)} ${all === 1 ? 'issue' : 'issues'}` : `${number(shown)} of ${number(all)} issues`;
    document.dispatchEvent(new Event('filtered'));
  };
  const clear = () => {
    for (const field of [text, title, ...choices]) field.value = '';
    apply();
  };
  // What a link leads to must be there, whatever the filters say.
  const reveal = (hash) => {
    let id = '';
    try { id = decodeURIComponent(hash.slice(1)); } catch { return; }
    const target = id && byId(id);
    const section = target && target.closest('section.issue');
    if (section && section.hidden) {
      clear();
      target.scrollIntoView();
    }
  };
  let waiting;
  for (const field of [text, title]) {
    field.addEventListener('input', () => {
      clearTimeout(waiting);
      waiting = setTimeout(apply, 120);
    });
  }
  order.addEventListener('change', sort);
  for (const choice of choices) choice.addEventListener('change', apply);
  byId('f-clear').addEventListener('click', () => {
    clear();
    text.focus();
  });
  addEventListener('hashchange', () => reveal(location.hash));
  // A link to where the address leads already changes no address.
  document.addEventListener('click', (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link) reveal(link.hash);
  });
  box.hidden = false;
  byId('to-search').hidden = false;
  // A browser that went back may have kept what was chosen.
  const again = () => {
    if (order.value) sort();
    if ([text, title, ...choices].some((field) => field.value)) apply();
  };
  again();
  document.addEventListener('refilter', again);
})();
