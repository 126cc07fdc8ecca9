'use strict';
// Differences by directory, each unfolded on demand.
{
  const { $, number, counted, make, path, state, go, put } = page;
  const DIRS = 100;
  const ROWS = 100;
  // Directories are unfolded as long as no more rows are shown.
  const UNFOLDED = 40;

  const start = (data) => {
    const dirs = data.dirs.split('\n');
    const rows = [];
    data.classes.forEach((listed, rank) => {
      if (!listed.name) return;
      const [names, to] = [listed.name.split('\n'), listed.to.split('\n')];
      const [kinds, entries] = [listed.kind.split(' '), listed.entries.split(' ')];
      let dir = 0;
      listed.dir.split(' ').forEach((step, i) => {
        dir += Number(step);
        rows.push({ rank, dir, name: names[i], to: to[i], kind: kinds[i], entries: entries[i], details: listed.details[i] });
      });
    });
    const classes = data.classes.map((one) => one.class);
    const full = (row) => {
      const dir = dirs[row.dir];
      return dir === '' ? row.name : dir.endsWith('/') ? dir + row.name : dir + '/' + row.name;
    };
    const text = (row) => {
      row.text ??= [classes[row.rank], full(row), row.to, row.kind, JSON.stringify(row.details || '')].join('\n').toLowerCase();
      return row.text;
    };

    const chip = (rank, words) => make('span', { className: 'class k-' + classes[rank] }, words);
    const value = (one) => (one.path === undefined ? make('span', { className: 'v' }, one) : path(one.path));
    const fields = (row) => {
      const all = row.details?.fields || [];
      if (!all.length) return null;
      const list = make('dl', { className: 'diff' });
      for (const [name, before, after] of all) {
        const cell = make('dd', null, value(before));
        // Two digests do not fit a line.
        if (after !== undefined) cell.append(name === 'digest' ? make('br') : ' ', make('span', { className: 'arrow' }, '\u2192'), ' ', value(after));
        list.append(make('dt', null, name), cell);
      }
      return all[0].length > 2 ? list : make('details', null, make('summary', null, counted(all.length, 'field', 'fields')), list);
    };
    const rowItem = (row) => {
      const line = make('div', { className: 'entry' }, chip(row.rank, classes[row.rank]), ' ', path(row.name));
      if (row.to) line.append(' ', make('span', { className: 'to' }, '\u2192'), ' ', path(row.to));
      line.append(' ', make('span', { className: 'kind' }, row.kind));
      const item = make('li', { className: 'change k-row-' + classes[row.rank] }, line);
      if (row.entries) item.append(make('p', null, 'renamed, with ' + counted(Number(row.entries), 'entry', 'entries') + ' in it'));
      for (const remark of row.details?.remarks || []) item.append(make('p', null, remark));
      const list = fields(row);
      if (list) item.append(list);
      return item;
    };
    const fill = (list, all) => {
      let shown = 0;
      const more = make('button', { type: 'button', className: 'more' });
      const add = () => {
        const items = all.slice(shown, shown + ROWS).map(rowItem);
        list.append(...items);
        shown += items.length;
        more.hidden = shown >= all.length;
        more.textContent = 'Show ' + number(Math.min(ROWS, all.length - shown)) + ' more of ' + number(all.length - shown);
        return items[0];
      };
      more.addEventListener('click', () => { const first = add(); first.tabIndex = -1; first.focus(); });
      add();
      list.after(more);
    };
    const dirItem = (one, isOpen) => {
      const summary = make('summary', null, path(dirs[one.dir] === '' ? '.' : dirs[one.dir].replace(/\/*$/, '/')));
      one.counts.forEach((count, rank) => {
        if (count) summary.append(' ', chip(rank, number(count) + ' ' + classes[rank]));
      });
      const list = make('ul', { className: 'changes' });
      const details = make('details', null, summary, list);
      let isFilled = false;
      const unfold = () => { if (!isFilled) { isFilled = true; fill(list, one.rows); } };
      details.addEventListener('toggle', () => { if (details.open) unfold(); });
      if (isOpen) { details.open = true; unfold(); }
      return make('li', { className: 'drow' }, details);
    };

    let listed = [];
    let drawn = 0;
    let unfolded = 0;
    const draw = () => {
      const items = listed.slice(drawn, drawn + DIRS).map((one) => {
        const isOpen = unfolded + one.rows.length <= UNFOLDED;
        if (isOpen) unfolded += one.rows.length;
        return dirItem(one, isOpen);
      });
      $('changes').append(...items);
      drawn += items.length;
      $('more').hidden = drawn >= listed.length;
      $('more').textContent = 'Show ' + number(Math.min(DIRS, listed.length - drawn)) + ' more of ' + counted(listed.length - drawn, 'directory', 'directories');
      return items[0];
    };
    let last = null;
    const show = (params) => {
      const key = ['q', 'under', 'in', 'class'].map((one) => params.get(one)).join('\n');
      if (key === last) return;
      last = key;
      const words = (params.get('q') || '').toLowerCase().split(' ').filter(Boolean);
      const [under, within, kind] = [params.get('under'), params.get('in'), params.get('class')];
      const start = under && (under.endsWith('/') ? under : under + '/');
      const isUnder = (one) => one === under || one.startsWith(start);
      const places = dirs.map((dir) => (within === null || dir === within) && (!under || isUnder(dir)));
      const byDir = new Map();
      let left = 0;
      for (const row of rows) {
        if (kind && classes[row.rank] !== kind) continue;
        const isHere = places[row.dir] || (under && (isUnder(full(row)) || (row.to && isUnder(row.to))));
        if (!isHere || !words.every((word) => text(row).includes(word))) continue;
        left += 1;
        // What is damaged in a directory stands apart: nothing else may hide it.
        const home = row.rank === 0 ? -1 - row.dir : row.dir;
        let one = byDir.get(home);
        if (!one) {
          one = { dir: row.dir, rank: row.rank, rows: [], counts: classes.map(() => 0) };
          byDir.set(home, one);
        }
        one.rows.push(row);
        one.counts[row.rank] += 1;
      }
      listed = [...byDir.values()].sort((a, b) => a.rank - b.rank || (dirs[a.dir] < dirs[b.dir] ? -1 : 1));
      $('changes').replaceChildren();
      drawn = 0;
      unfolded = 0;
      draw();
      const place = within ?? under;
      $('place').hidden = place === null && !kind;
      $('place').textContent = [kind, place !== null && 'in ' + (place || '.')].filter(Boolean).join(', ') + ' \u00d7';
      $('status').textContent = left === rows.length ? '' : number(left) + ' of ' + number(rows.length) + ' listed entries';
      $('none').hidden = left > 0;
      if ($('filter') !== document.activeElement) $('filter').value = params.get('q') || '';
    };
    $('filter').addEventListener('input', () => go(put('q', $('filter').value)));
    $('filter').addEventListener('keydown', (event) => {
      if (event.key === 'Escape') { $('filter').value = ''; go(put('q', '')); }
    });
    $('place').addEventListener('click', () => {
      const params = state();
      for (const key of ['under', 'in', 'class']) params.delete(key);
      go(params);
      $('filter').focus();
    });
    $('more').addEventListener('click', () => draw()?.querySelector('summary')?.focus());
    $('bar').hidden = rows.length < 2;
    $('loading').hidden = true;
    page.onState(show);

    // On paper nothing can be unfolded: what is listed is printed.
    let folded = [];
    addEventListener('beforeprint', () => {
      folded = [...document.querySelectorAll('.drow > details:not([open])')];
      for (const details of folded) {
        details.open = true;
        details.dispatchEvent(new Event('toggle'));
      }
    });
    addEventListener('afterprint', () => { for (const details of folded) details.open = false; });
  };

  page.data().then(start).catch((error) => {
    $('loading').textContent = 'This browser cannot show the entries: ' + error.message;
  });
}
