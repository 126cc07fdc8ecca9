'use strict';
// Decisions on duplicates: each file is kept until it is marked, and of each group one always is.
// They are saved as a file that `bc dup prune --from` obeys; nothing here changes any file.
{
  const { $, number, size, counted, make, path, bytes, state, go, put } = page;
  const PAGE = 50;
  const FOLDERS = 10;
  const NAMES = 12;
  const KINDS = {
    picture: /\.(?:jpe?g|png|gif|webp|avif|bmp)$/i,
    video: /\.(?:mp4|m4v|mov|mkv|avi|webm|mpe?g|3gp|mts)$/i,
    audio: /\.(?:mp3|flac|ogg|opus|m4a|wav|aac|wma)$/i,
    document: /\.(?:pdf|docx?|xlsx?|pptx?|od[tsp]|txt|md|rtf|epub|csv)$/i,
  };

  const start = (data) => {
    // Groups have files, files have names; each list begins where the one before it ends.
    const column = (text) => (text ? text.split(' ') : []);
    const starts = (counts) => {
      const all = new Uint32Array(counts.length + 1);
      counts.forEach((count, i) => { all[i + 1] = all[i] + Number(count); });
      return all;
    };
    const { groups, files, names } = data;
    const sizes = column(groups.size).map(Number);
    // What a number is nearly always is left out: whole blocks, and as many as files that may go.
    const blocks = sizes.map((one) => Math.ceil(one / 4096) * 4096);
    const fileAt = starts(column(groups.files));
    const nameAt = starts(column(files.names));
    const count = sizes.length;
    const groupOf = new Uint32Array(fileAt[count]);
    for (let g = 0; g < count; g += 1) groupOf.fill(g, fileAt[g], fileAt[g + 1]);
    const wasted = groups.wasted.split(' ').map((one, g) => (one ? Number(one) : blocks[g] * (fileAt[g + 1] - fileAt[g] - 1)));
    const own = files.own.split(' ').map((one, f) => (one ? Number(one) : blocks[groupOf[f]]));
    const mtimes = column(files.mtime_ns);
    const times = mtimes.map(Number);
    const isReference = column(files.reference).map((one) => one === '1');
    // Differences to the one before; the same name again is nothing.
    let dir = 0;
    const dirOf = Uint32Array.from(column(names.dir), (step) => { dir += Number(step); return dir; });
    const base = names.name.split('\n');
    base.forEach((name, n) => { base[n] = name || base[n - 1]; });
    const dirs = data.dirs.split('\n');
    const places = data.places.split('\n');

    const join = (dir, name) => (dir === '' ? name : dir.endsWith('/') ? dir + name : dir + '/' + name);
    const shown = (n) => join(dirs[dirOf[n]], base[n]);
    const filesOf = (g) => Array.from({ length: fileAt[g + 1] - fileAt[g] }, (_, i) => fileAt[g] + i);
    const namesOf = (f) => Array.from({ length: nameAt[f + 1] - nameAt[f] }, (_, i) => nameAt[f] + i);
    // Made when something is searched for.
    let lower = null;
    const kindOf = (g) => {
      const name = base[nameAt[fileAt[g]]];
      return Object.keys(KINDS).find((kind) => KINDS[kind].test(name)) || 'other';
    };

    // Directories in the order in which those below one are neighbours.
    let sorted = null;
    const below = (dir) => {
      sorted = sorted || dirs.map((one, i) => [one.endsWith('/') ? one : one + '/', i])
        .sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
      const prefix = dir.endsWith('/') ? dir : dir + '/';
      let [low, high] = [0, sorted.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (sorted[middle][0] < prefix) low = middle + 1; else high = middle;
      }
      const found = new Set();
      while (low < sorted.length && sorted[low][0].startsWith(prefix)) found.add(sorted[low++][1]);
      return found;
    };
    let filesByDir = null;
    const filesIn = (dirSet) => {
      if (!filesByDir) {
        filesByDir = dirs.map(() => []);
        for (let f = 0; f < own.length; f += 1) {
          for (const d of new Set(namesOf(f).map((n) => dirOf[n]))) filesByDir[d].push(f);
        }
      }
      const found = new Set();
      for (const d of dirSet) for (const f of filesByDir[d]) found.add(f);
      return found;
    };

    // The decisions.
    const pruned = new Uint8Array(own.length);
    const prunedOf = new Uint32Array(count);
    const total = { files: 0, bytes: 0, groups: 0 };
    let history = [];
    let isSaved = true;
    const flip = (f) => {
      const g = groupOf[f];
      const sign = pruned[f] ? -1 : 1;
      total.groups -= prunedOf[g] > 0;
      pruned[f] ^= 1;
      prunedOf[g] += sign;
      total.groups += prunedOf[g] > 0;
      total.files += sign;
      total.bytes += sign * own[f];
    };
    const say = (text) => { $('said').textContent = text; };
    // Marks files of one group: those that `goes` says, none where no file would be kept.
    const decide = (g, goes, changes) => {
      const all = filesOf(g);
      const isPruned = all.map((f) => !isReference[f] && goes(f));
      if (all.length < 2 || isPruned.every(Boolean)) return false;
      all.forEach((f, i) => {
        if (Boolean(pruned[f]) !== isPruned[i]) { flip(f); changes.push(f); }
      });
      return true;
    };
    const done = (changes, words) => {
      if (changes.length) { history.push(changes); isSaved = false; }
      if (words) say(words);
      refresh();
    };
    const undo = () => {
      const changes = history.pop();
      if (!changes) { say('Nothing has been decided yet.'); return; }
      changes.forEach(flip);
      isSaved = total.files === 0;
      say('Undone.');
      refresh();
    };
    const best = (g, better) => filesOf(g).reduce((a, b) => (better(b, a) ? b : a));
    const length = (f) => Math.min(...namesOf(f).map((n) => shown(n).length));
    const RULES = {
      newest: (a, b) => times[a] > times[b],
      oldest: (a, b) => times[a] < times[b],
      shortest: (a, b) => length(a) < length(b),
    };
    const keepBy = (g, rule, changes) => {
      const kept = best(g, RULES[rule]);
      return decide(g, (f) => f !== kept, changes);
    };

    // One group: its picture and its files.
    const time = (f) => {
      const date = new Date(times[f] / 1e6);
      return Number.isNaN(date.getTime()) ? '' : date.toISOString().slice(0, 16).replace('T', ' ');
    };
    const fileUrl = (n) => 'file://' + Array.from(bytes(join(places[dirOf[n]], base[n]).replace(/^\/+/, '/')), (b) => {
      const c = String.fromCharCode(b);
      return /[A-Za-z0-9/._~-]/.test(c) ? c : '%' + b.toString(16).toUpperCase().padStart(2, '0');
    }).join('');
    const picture = (n) => {
      const url = fileUrl(n);
      const image = make('img', { loading: 'lazy', decoding: 'async', width: 96, height: 96, alt: '', src: url });
      const link = make('a', { className: 'picture', href: url, target: '_blank', rel: 'noreferrer', 'aria-label': 'Open ' + base[n] }, image);
      image.addEventListener('error', () => link.remove());
      return link;
    };
    const button = (text, action, more) => {
      const node = make('button', { type: 'button', ...more }, text);
      node.addEventListener('click', action);
      return node;
    };
    const heading = (g) => counted(fileAt[g + 1] - fileAt[g], 'copy', 'copies') + ' of ' + size(sizes[g]) + ', ' + size(wasted[g]) + ' wasted';
    const fileRow = (g, f, choice) => {
      const names = namesOf(f);
      const lines = make('div', { className: 'names', id: 'p' + f });
      names.slice(0, NAMES).forEach((n, i) => {
        const line = make('div', null, path(shown(n)));
        if (i > 0) line.prepend(make('span', { className: 'tag same' }, 'same file'));
        lines.append(line);
      });
      if (names.length > NAMES) lines.append(make('div', null, number(names.length - NAMES) + ' more names of the same file'));
      const row = make('li', { className: 'file' });
      row.dataset.file = f;
      if (choice && !isReference[f]) {
        const box = make('input', { type: 'checkbox', checked: Boolean(pruned[f]), 'aria-labelledby': 'l' + f + ' p' + f });
        box.addEventListener('change', () => {
          const changes = [];
          const goes = (one) => (one === f ? box.checked : Boolean(pruned[one]));
          if (decide(g, goes, changes)) done(changes, ''); else { box.checked = false; done([], 'One file of each group is kept, and this is the last one.'); }
        });
        row.append(make('label', { className: 'mark', id: 'l' + f }, box, 'Prune'));
      } else {
        row.append(make('span', { className: 'mark' }, choice ? 'Reference' : ''));
      }
      row.append(lines, make('span', { className: 'when' }, time(f)));
      if (choice) {
        row.append(button('Keep this', () => {
          const changes = [];
          decide(g, (one) => one !== f, changes);
          done(changes, 'Kept: ' + base[names[0]]);
        }, { 'aria-describedby': 'p' + f }));
      }
      return row;
    };
    const groupItem = (g) => {
      const files = filesOf(g);
      const choice = files.length > 1;
      const item = make('li', { className: 'group' });
      item.dataset.group = g;
      const list = make('ul', { className: 'copies' });
      const add = (from, to) => list.append(...files.slice(from, to).map((f) => fileRow(g, f, choice)));
      add(0, NAMES);
      const tools = make('div', { className: 'tools' });
      if (choice) {
        for (const [rule, words] of [['newest', 'Keep newest'], ['oldest', 'Keep oldest']]) {
          tools.append(button(words, () => { const changes = []; keepBy(g, rule, changes); done(changes, ''); }));
        }
        tools.append(button('Keep all', () => { const changes = []; decide(g, () => false, changes); done(changes, ''); }));
        const folder = dirs[dirOf[nameAt[files[0]]]];
        if (folder) tools.append(button('Show folder', () => { go(put('under', folder)); $('filter').focus(); }));
      }
      item.append(make('h3', null, heading(g)), tools);
      if (KINDS.picture.test(base[nameAt[files[0]]])) item.append(picture(nameAt[files[0]]));
      item.append(list);
      let next = NAMES;
      if (files.length > next) {
        const more = button('', () => {
          add(next, next + 100);
          next += 100;
          more.textContent = number(files.length - next) + ' more';
          more.hidden = next >= files.length;
          refresh();
        });
        more.textContent = number(files.length - next) + ' more';
        item.append(more);
      }
      return item;
    };

    // Whole folders: of some all contents are in another one.
    const folders = data.folders;
    const inside = folders.map(() => null);
    const insideOf = (i) => {
      inside[i] = inside[i] || folders[i].paths.map((one) => filesIn(below(one)));
      return inside[i];
    };
    const groupsOf = (fileSet) => new Set(Array.from(fileSet, (f) => groupOf[f]));
    // Keeps what one folder has, and prunes its copies in the others.
    const keepFolder = (kept, others, changes) => {
      const stays = kept;
      for (const g of groupsOf(kept)) {
        decide(g, (f) => (stays.has(f) ? false : others.has(f) || Boolean(pruned[f])), changes);
      }
    };
    const folderItem = (i) => {
      const folder = folders[i];
      const item = make('li', { className: 'group folder' });
      item.dataset.folder = i;
      const what = counted(folder.files, 'file', 'files') + ', ' + size(folder.bytes);
      const words = folder.kind === 'equal'
        ? counted(folder.paths.length, 'copy', 'copies') + ' of a folder with ' + what + '; ' + size(folder.wasted) + ' wasted'
        : what + (folder.kind === 'same' ? ': both folders have the same contents' : ': the first folder contains all of the second');
      const list = make('ul', { className: 'copies' });
      const add = (from, to) => folder.paths.slice(from, to).forEach((one, offset) => {
        const nth = from + offset;
        const row = make('li', { className: 'file' });
        row.dataset.nth = nth;
        const name = path(one.endsWith('/') ? one : one + '/');
        name.id = 'd' + i + '-' + nth;
        row.append(make('span', { className: 'mark state' }), make('div', { className: 'names' }, name));
        if (folder.kind !== 'contained' || nth === 0) {
          row.append(button('Keep this folder', () => {
            const sets = insideOf(i);
            const others = new Set(sets.flatMap((set, j) => (j === nth ? [] : [...set])));
            const changes = [];
            keepFolder(sets[nth], others, changes);
            done(changes, counted(changes.length, 'decision', 'decisions') + ' changed: all files in ' + one + ' stay.');
          }, { 'aria-describedby': name.id }));
        }
        row.append(button('Show files', () => { go(put('under', one)); $('filter').focus(); }, { 'aria-describedby': name.id }));
        list.append(row);
      });
      add(0, NAMES);
      item.append(make('h3', null, words));
      let cover;
      for (const f of insideOf(i)[0]) {
        if (KINDS.picture.test(base[nameAt[f]])) { cover = nameAt[f]; break; }
      }
      if (cover !== undefined) item.append(picture(cover));
      item.append(list);
      if (folder.paths.length > NAMES) {
        const more = button(number(folder.paths.length - NAMES) + ' more', () => {
          add(NAMES);
          more.remove();
          refresh();
        });
        item.append(more);
      }
      return item;
    };

    // What is on the page shows the decisions.
    const refresh = () => {
      for (const row of document.querySelectorAll('.file[data-file]')) {
        const f = Number(row.dataset.file);
        row.classList.toggle('pruned', Boolean(pruned[f]));
        const box = row.querySelector('input');
        if (box) box.checked = Boolean(pruned[f]);
      }
      for (const item of document.querySelectorAll('.group[data-group]')) {
        item.classList.toggle('decided', prunedOf[item.dataset.group] > 0);
      }
      for (const item of document.querySelectorAll('.folder')) {
        const sets = insideOf(item.dataset.folder);
        for (const row of item.querySelectorAll('.file')) {
          let goes = 0;
          const set = sets[row.dataset.nth];
          for (const f of set) goes += pruned[f];
          row.classList.toggle('pruned', goes > 0 && goes === set.size);
          row.querySelector('.state').textContent = !goes ? 'Kept' : goes === set.size ? 'Pruned' : number(goes) + ' pruned';
        }
      }
      $('marked').textContent = total.files
        ? counted(total.files, 'file', 'files') + ' to prune in ' + counted(total.groups, 'group', 'groups') + ': ' + size(total.bytes)
        : 'Nothing is marked: every file is kept.';
      $('save').disabled = total.files === 0;
      $('undo').disabled = history.length === 0;
    };

    // Filters, order, and as much of the list as was asked for.
    let listed = [];
    let drawn = 0;
    const draw = () => {
      const items = listed.slice(drawn, drawn + PAGE).map(groupItem);
      $('groups').append(...items);
      drawn += items.length;
      $('more').hidden = drawn >= listed.length;
      $('more').textContent = 'Show ' + number(Math.min(PAGE, listed.length - drawn)) + ' more of ' + number(listed.length - drawn);
      refresh();
      return items[0];
    };
    const ORDERS = {
      wasted: (a, b) => wasted[b] - wasted[a],
      size: (a, b) => sizes[b] - sizes[a],
      copies: (a, b) => (fileAt[b + 1] - fileAt[b]) - (fileAt[a + 1] - fileAt[a]),
      newest: (a, b) => Math.max(...filesOf(b).map((f) => times[f])) - Math.max(...filesOf(a).map((f) => times[f])),
      files: (a, b) => (shown(nameAt[fileAt[a]]) < shown(nameAt[fileAt[b]]) ? -1 : 1),
    };
    const matches = (params) => {
      const words = (params.get('q') || '').toLowerCase().split(' ').filter(Boolean);
      const under = params.get('under');
      const within = params.get('in');
      const wanted = under === null ? null : below(under);
      const named = under === null ? null : under.replace(/\/+$/, '');
      const kind = params.get('kind');
      const decided = params.get('state');
      // Each word is in the same path; most directories are those of many names.
      const inDir = words.map((word) => dirs.map((dir) => dir.toLowerCase().includes(word)));
      if (words.length) lower = lower || base.map((name) => name.toLowerCase());
      const isHere = (n) => words.every((word, i) => inDir[i][dirOf[n]] || lower[n].includes(word)
          || (word.includes('/') && shown(n).toLowerCase().includes(word)))
        && (wanted === null || wanted.has(dirOf[n]) || shown(n) === named)
        && (within === null || dirs[dirOf[n]] === within);
      return (g) => {
        if (kind && kindOf(g) !== kind) return false;
        if (decided && (decided === 'decided') !== (prunedOf[g] > 0)) return false;
        for (let n = nameAt[fileAt[g]]; n < nameAt[fileAt[g + 1]]; n += 1) if (isHere(n)) return true;
        return false;
      };
    };
    let last = null;
    const show = (params) => {
      const key = ['q', 'under', 'in', 'kind', 'state', 'sort'].map((one) => params.get(one)).join('\n');
      if (key === last) return;
      last = key;
      const isIn = matches(params);
      listed = [];
      for (let g = 0; g < count; g += 1) if (isIn(g)) listed.push(g);
      const order = ORDERS[params.get('sort')] ? params.get('sort') : 'wasted';
      // The data has this order.
      if (order !== 'wasted') listed.sort((a, b) => ORDERS[order](a, b) || a - b);
      $('groups').replaceChildren();
      drawn = 0;
      draw();
      const place = params.get('in') ?? params.get('under');
      $('place').hidden = place === null;
      $('place').textContent = 'in ' + (place || '.') + ' \u00d7';
      $('folder-tools').hidden = params.get('under') === null;
      $('status').textContent = listed.length === count ? counted(count, 'group', 'groups') : number(listed.length) + ' of ' + counted(count, 'group', 'groups');
      $('all').textContent = listed.length === count ? 'All groups:' : 'The ' + number(listed.length) + ' groups shown:';
      $('none').hidden = listed.length > 0;
      for (const [id, name] of [['filter', 'q'], ['kind', 'kind'], ['state', 'state'], ['sort', 'sort']]) {
        if ($(id) !== document.activeElement) $(id).value = name === 'sort' ? order : params.get(name) || '';
      }
    };

    $('filter').addEventListener('input', () => go(put('q', $('filter').value)));
    $('filter').addEventListener('keydown', (event) => {
      if (event.key === 'Escape') { $('filter').value = ''; go(put('q', '')); }
    });
    for (const name of ['kind', 'state', 'sort']) {
      $(name).addEventListener('change', () => go(put(name, $(name).value)));
    }
    $('place').addEventListener('click', () => {
      const params = state();
      params.delete('under');
      params.delete('in');
      go(params);
      $('filter').focus();
    });
    $('more').addEventListener('click', () => draw()?.querySelector('input, button')?.focus());
    const bulk = (id, each) => $(id).addEventListener('click', () => {
      const changes = [];
      let skipped = 0;
      for (const g of listed) skipped += !each(g, changes);
      done(changes, counted(changes.length, 'decision', 'decisions') + ' changed' + (skipped ? '; ' + counted(skipped, 'group has', 'groups have') + ' no choice.' : '.'));
    });
    bulk('keep-newest', (g, changes) => keepBy(g, 'newest', changes));
    bulk('keep-oldest', (g, changes) => keepBy(g, 'oldest', changes));
    bulk('keep-shortest', (g, changes) => keepBy(g, 'shortest', changes));
    bulk('keep-all', (g, changes) => decide(g, () => false, changes));
    let heres = null;
    for (const [id, goes] of [['keep-folder', (isHere) => !isHere], ['prune-folder', (isHere) => isHere]]) {
      bulk(id, (g, changes) => {
        const under = state().get('under');
        if (!heres || heres.under !== under) heres = { under, files: filesIn(below(under)) };
        const here = heres.files;
        return filesOf(g).some((f) => here.has(f)) && decide(g, (f) => goes(here.has(f)), changes);
      });
    }

    let drawnFolders = 0;
    const drawFolders = () => {
      const items = folders.slice(drawnFolders, drawnFolders + FOLDERS).map((_, i) => folderItem(drawnFolders + i));
      $('folders').append(...items);
      drawnFolders += items.length;
      $('more-folders').hidden = drawnFolders >= folders.length;
      $('more-folders').textContent = 'Show ' + number(Math.min(FOLDERS, folders.length - drawnFolders)) + ' more of ' + number(folders.length - drawnFolders);
      return items[0];
    };
    $('more-folders').addEventListener('click', () => { drawFolders()?.querySelector('button')?.focus(); refresh(); });

    // The file of decisions: the groups with a mark, and all that prune checks.
    const json = (text, key) => {
      if (!text.includes('\\')) return '"path":' + JSON.stringify(text);
      const raw = bytes(text);
      let exact;
      try { exact = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(raw); } catch { /* no UTF-8 */ }
      if (exact !== undefined) return '"path":' + JSON.stringify(exact);
      const encoded = btoa(Array.from(raw, (b) => String.fromCharCode(b)).join(''));
      return '"path":' + JSON.stringify(new TextDecoder('utf-8', { ignoreBOM: true }).decode(raw)) + ',"' + key + '":"' + encoded + '"';
    };
    const inodes = () => {
      let inode = 0n;
      return column(files.ino).map((step) => { inode = BigInt.asUintN(64, inode + BigInt(step)); return inode; });
    };
    const decisions = () => {
      const inos = inodes();
      const ctimes = files.ctime_ns.split(' ').map((one, f) => one || mtimes[f]);
      const [devs, links, exact] = [files.dev, files.nlink, groups.size].map(column);
      const roots = column(names.root);
      const parts = ['{"schema":1,"command":"dup decisions","version":' + JSON.stringify(data.version)
        + ',\n"roots":[' + data.roots.map((one) => '{' + json(one, 'b64') + '}').join(',')
        + '],\n"reference_roots":' + JSON.stringify(data.reference_roots) + ',\n"groups":['];
      let comma = '\n';
      for (let g = 0; g < count; g += 1) {
        if (!prunedOf[g]) continue;
        const all = filesOf(g);
        if (all.every((f) => pruned[f])) throw new Error('a group would lose its last copy');
        const lines = all.flatMap((f) => namesOf(f).map((n) => '{' + json(join(places[dirOf[n]], base[n]), 'path_b64')
          + ',"root":' + roots[n] + ',"reference":' + isReference[f] + ',"dev":' + devs[f] + ',"ino":' + inos[f]
          + ',"nlink":' + links[f] + ',"size":' + exact[g] + ',"mtime_ns":' + mtimes[f] + ',"ctime_ns":' + ctimes[f]
          + ',"decision":"' + (pruned[f] ? 'prune' : 'keep') + '"}'));
        parts.push(comma + '{"size":' + exact[g] + ',"files":[' + lines.join(',\n') + ']}');
        comma = ',\n';
      }
      parts.push('\n]}\n');
      return parts;
    };
    $('save').addEventListener('click', () => {
      const url = URL.createObjectURL(new Blob(decisions(), { type: 'application/json' }));
      make('a', { href: url, download: 'decisions.json' }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
      isSaved = true;
      $('next').hidden = false;
      say('decisions.json was saved to the download folder of your browser.');
    });
    $('undo').addEventListener('click', undo);
    addEventListener('beforeunload', (event) => { if (!isSaved) event.preventDefault(); });

    // Keys of a group that has the focus.
    addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const item = event.target.closest('.group');
      if (!item) return;
      const g = item.dataset.group === undefined ? undefined : Number(item.dataset.group);
      const step = { j: 'nextElementSibling', k: 'previousElementSibling' }[event.key];
      const changes = [];
      if (step) {
        const to = item[step];
        to?.querySelector('input, button')?.focus();
        to?.scrollIntoView({ block: 'nearest' });
      } else if (event.key === 'u') {
        undo();
      } else if (g === undefined) {
        return;
      } else if (event.key === 'n' || event.key === 'o') {
        keepBy(g, event.key === 'n' ? 'newest' : 'oldest', changes);
        done(changes, '');
      } else if (event.key === 'a') {
        decide(g, () => false, changes);
        done(changes, '');
      } else if (/^[1-9]$/.test(event.key)) {
        const kept = filesOf(g)[event.key - 1];
        if (kept === undefined) return;
        decide(g, (f) => f !== kept, changes);
        done(changes, '');
      } else {
        return;
      }
      event.preventDefault();
    });

    for (const id of ['bar', 'bulk', 'totals']) $(id).hidden = false;
    $('loading').hidden = true;
    $('folders-section').hidden = folders.length === 0;
    drawFolders();
    page.onState(show);
    refresh();
  };

  page.data().then(start).catch((error) => {
    $('loading').textContent = 'This browser cannot show the groups: ' + error.message;
  });
}
