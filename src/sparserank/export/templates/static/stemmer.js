// The English stemmer of the Snowball project (Porter 2): the same stems as the Python side computes.

const VOWEL = /[aeiouy]/;
const DOUBLE = /(bb|dd|ff|gg|mm|nn|pp|rr|tt)$/;
const LI = /[cdeghkmnrt]li$/;
const FIXED = {
  skis: "ski", skies: "sky", idly: "idl", gently: "gentl", ugly: "ugli", early: "earli", only: "onli",
  singly: "singl", sky: "sky", news: "news", howe: "howe", atlas: "atlas", cosmos: "cosmos", bias: "bias",
  andes: "andes",
};
const STEP_2 = {
  ational: "ate", tional: "tion", enci: "ence", anci: "ance", abli: "able", entli: "ent", izer: "ize", ization: "ize",
  ation: "ate", ator: "ate", alism: "al", aliti: "al", alli: "al", fulness: "ful", ousli: "ous", ousness: "ous",
  iveness: "ive", iviti: "ive", biliti: "ble", bli: "ble", fulli: "ful", lessli: "less",
};
const STEP_3 = {
  ational: "ate", tional: "tion", alize: "al", icate: "ic", iciti: "ic", ical: "ic", ful: "", ness: "",
};
const STEP_4 = [
  "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ion", "al",
  "er", "ic",
];
const by_length = (suffixes) => Object.keys(suffixes).sort((a, b) => b.length - a.length);
const LONGEST_2 = by_length(STEP_2), LONGEST_3 = by_length(STEP_3);

// The positions after the first and the second non-vowel that follows a vowel.
function regions(word) {
  const after = (from) => {
    const match = /[aeiouy][^aeiouy]/.exec(word.slice(from));
    return match ? from + match.index + 2 : word.length;
  };
  const prefix = /^(gener|commun|arsen|past|univers|later|emerg|organ|inter)/.exec(word);
  const r1 = prefix ? prefix[0].length : after(0);
  return [r1, after(r1)];
}

const short_syllable = (word) =>
  /[^aeiouy][aeiouy][^aeiouywxY]$/.test(word) || /^[aeiouy][^aeiouy]$/.test(word) || word === "past";

export function stem(word) {
  if (word.length < 3) return word;
  if (Object.hasOwn(FIXED, word)) return FIXED[word];
  let w = word.replace(/^'/, "").replace(/^y/, "Y").replace(/([aeiouy])y/g, "$1Y");
  const [r1, r2] = regions(w);
  w = w.replace(/'s'$|'s$|'$/, "");
  // 1a: plurals
  if (w.endsWith("sses")) w = w.slice(0, -2);
  else if (/ie[ds]$/.test(w)) w = w.slice(0, w.length > 4 ? -2 : -1);
  else if (/[aeiouy].+s$/.test(w) && !/(us|ss)$/.test(w)) w = w.slice(0, -1);
  // 1b: past tense and participles
  const ending = /(eedly|ingly|edly|eed|ing|ed)$/.exec(w)?.[0];
  if (ending?.startsWith("eed")) {
    if (w.length - ending.length >= r1 && !/^(proc|exc|succ)$/.test(w.slice(0, -ending.length)))
      w = w.slice(0, -ending.length) + "ee";
  } else if (ending) {
    const rest = w.slice(0, -ending.length);
    if (ending === "ing" && /^[^aeiouy]y$/.test(rest)) w = rest.slice(0, -1) + "ie";
    else if (ending === "ing" && /^(inn|out|cann|herr|earr|even)$/.test(rest)) return w;
    else if (VOWEL.test(rest)) {
      w = rest;
      if (/(at|bl|iz)$/.test(w)) w += "e";
      else if (DOUBLE.test(w)) w = /^[aeo](bb|dd|ff|gg|mm|nn|pp|rr|tt)$/.test(w) ? w : w.slice(0, -1);
      else if (w.length <= r1 && short_syllable(w)) w += "e";
    }
  }
  // 1c: y to i
  if (/.[^aeiouy][yY]$/.test(w)) w = w.slice(0, -1) + "i";
  // 2 and 3: derivational suffixes in R1
  const replace = (longest, table, extra) => {
    const suffix = longest.find((one) => w.endsWith(one));
    if (suffix !== undefined) {
      if (w.length - suffix.length >= r1) w = w.slice(0, -suffix.length) + table[suffix];
    } else extra();
  };
  replace(LONGEST_2, STEP_2, () => {
    if (w.endsWith("ogist") && w.length - 5 >= r1) w = w.slice(0, -3);
    else if (/logi$/.test(w) && w.length - 3 >= r1) w = w.slice(0, -1);
    else if (LI.test(w) && w.length - 2 >= r1) w = w.slice(0, -2);
  });
  replace(LONGEST_3, STEP_3, () => {
    if (w.endsWith("ative") && w.length - 5 >= r2) w = w.slice(0, -5);
  });
  // 4: suffixes in R2
  const suffix = STEP_4.find((one) => w.endsWith(one));
  if (suffix && w.length - suffix.length >= r2 && (suffix !== "ion" || /[st]ion$/.test(w)))
    w = w.slice(0, -suffix.length);
  // 5: a final e or l
  if (w.endsWith("e")) {
    const at = w.length - 1;
    if (at >= r2 || (at >= r1 && !short_syllable(w.slice(0, -1)))) w = w.slice(0, -1);
  } else if (w.endsWith("ll") && w.length - 1 >= r2) w = w.slice(0, -1);
  return w.replace(/Y/g, "y");
}
