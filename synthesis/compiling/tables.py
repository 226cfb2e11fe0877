"""Tables of what rules name: kinds of files, languages, characters, package managers, styles of names.

Keys are regular expressions without regard to case, unless a table says something else.
"""

from agentx.synthesis.language.words import vocabulary

TEST_FILES = (
    "tests/**",
    "test/**",
    "**/tests/**",
    "**/test/**",
    "**/__tests__/**",
    "**/spec/**",
    "**/test_*",
    "**/*_test.*",
    "**/*.test.*",
    "**/*.spec.*",
    "**/*Test.*",
    "**/*Tests.*",
    "**/*_spec.*",
    "**/conftest.py",
)

FILE_KINDS: dict[str, tuple[str, ...]] = {
    r"(?:jupyter |ipython )?notebooks?": ("**/*.ipynb",),
    r"lock[- ]?files?": (
        "**/package-lock.json",
        "**/yarn.lock",
        "**/pnpm-lock.yaml",
        "**/poetry.lock",
        "**/uv.lock",
        "**/Cargo.lock",
        "**/Gemfile.lock",
        "**/composer.lock",
        "**/Pipfile.lock",
        "**/go.sum",
        "**/bun.lockb",
        "**/bun.lock",
        "**/packages.lock.json",
        "**/pubspec.lock",
    ),
    r"migrations?(?: files?| scripts?)|(?:applied |existing |old )migrations": (
        "**/migrations/**",
        "**/migrate/**",
    ),
    r"dockerfiles?": ("**/Dockerfile", "**/Dockerfile.*", "**/*.dockerfile"),
    r"(?:docker[- ])?compose files?": ("**/docker-compose*.y*ml", "**/compose*.y*ml"),
    r"(?:the )?ci (?:config(?:uration)?s?|pipelines?|workflows?|files?|setup)|github (?:actions"
    r"|workflows?)(?: files?)?": (
        ".github/workflows/**",
        ".gitlab-ci.yml",
        ".circleci/**",
        "**/Jenkinsfile",
        "azure-pipelines.yml",
        ".travis.yml",
        "bitbucket-pipelines.yml",
    ),
    r"(?:image|picture|photo) files?|(?:the |our |any )(?:images|photos|pictures)": (
        "**/*.png",
        "**/*.jpg",
        "**/*.jpeg",
        "**/*.gif",
        "**/*.webp",
        "**/*.svg",
    ),
    r"(?:excel|spreadsheet)(?: files?|s)|spreadsheets|workbooks": ("**/*.xlsx", "**/*.xls", "**/*.ods"),
    r"word (?:files?|documents?)": ("**/*.docx", "**/*.doc"),
    r"makefiles?": ("**/Makefile", "**/*.mk"),
    r"snapshots? files?|snapshots": ("**/__snapshots__/**", "**/*.snap"),
    r"env files?|dotenv(?: files?)?": ("**/.env", "**/.env.*"),
    r"changelog": ("**/CHANGELOG*",),
    r"(?:the )?licen[cs]e file": ("**/LICENSE*",),
    r"readme(?: files?)?": ("**/README*",),
    r"typescript (?:files?|modules?|code)": ("**/*.ts", "**/*.tsx"),
    r"javascript (?:files?|modules?|code)": ("**/*.js", "**/*.jsx", "**/*.mjs"),
    r"css files?|stylesheets?": ("**/*.css", "**/*.scss"),
}
"""By the name of a kind of file, its globs."""

_WEB = ("javascript", "typescript", "tsx")
LANGUAGES: dict[str, tuple[str, ...]] = {
    "python": ("python",),
    "django": ("python",),
    "typescript": ("typescript", "tsx"),
    r"ts(?= )": ("typescript", "tsx"),
    "javascript": _WEB,
    r"js(?= )": _WEB,
    "react|vue|svelte|node": _WEB,
    "Go": ("go",),
    "golang": ("go",),
    "rust": ("rust",),
    "java": ("java",),
    "spring(?: boot)?": ("java", "kotlin"),
    "kotlin": ("kotlin",),
    "c#|csharp|\\.net": ("csharp",),
    "php|laravel|symfony": ("php",),
    "ruby|rails": ("ruby",),
    "swift": ("swift",),
    r"c\+\+": ("cpp",),
    r"c(?= (?:code|files?|sources?))|firmware|embedded": ("c", "cpp"),
    "scala": ("scala",),
    "lua": ("lua",),
    "elixir": ("elixir",),
}
"""By the name of a language or framework, the names of ast-grep."""

BRACED = ("javascript", "typescript", "tsx", "go", "rust", "c", "cpp")
CALL_SHAPES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("python",), "call", "function"),
    (BRACED, "call_expression", "function"),
    (("rust",), "macro_invocation", "macro"),
    (("php",), "function_call_expression", "function"),
    (("csharp",), "invocation_expression", "function"),
)
"""Languages, the node kind of their calls, and the field that has what is called."""

TEXTUAL_CALLS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("java",), "method_invocation"),
    (("kotlin", "swift"), "call_expression"),
    (("ruby",), "call"),
)
"""Languages whose calls are told by the text of the node, and the node kind."""

CALLS: dict[str, tuple[str, ...]] = {
    r"console\.\w+|alert|confirm|setTimeout|setInterval|document\.\w+|window\.\w+|fetch|require"
    r"|localStorage\.\w+|Math\.\w+|JSON\.\w+|useEffect|dangerouslySetInnerHTML": _WEB,
    r"print|input|breakpoint|os\.\w+(?:\.\w+)*|subprocess\.\w+|pickle\.\w+|logging\.\w+|time\.sleep"
    r"|datetime\.\w+(?:\.\w+)?|pd\.\w+|np\.\w+|requests\.\w+|locals|globals|setattr|getattr|yaml\.load": (
        "python",
    ),
    r"eval|exec": ("python", *_WEB, "php"),
    r"panic": ("go",),
    r"fmt\.\w+|log\.\w+|os\.Exit|ioutil\.\w+|time\.Sleep|context\.\w+": ("go",),
    r"unwrap|expect|\w+!|clone|unwrap_unchecked|mem::\w+|std::\w+(?:::\w+)*": ("rust",),
    r"malloc|calloc|realloc|free|strcpy|strcat|sprintf|gets|printf|scanf|strtok|atoi|alloca|memcpy|HAL_Delay"
    r"|setjmp|longjmp|vsprintf": ("c", "cpp"),
    r"System\.out\.\w+|System\.err\.\w+|System\.exit|Thread\.sleep|System\.currentTimeMillis"
    r"|printStackTrace": ("java",),
    r"println": ("kotlin", "java"),
    r"Console\.\w+|Thread\.Sleep|DateTime\.\w+|Task\.Run|GC\.Collect": ("csharp",),
    r"var_dump|print_r|dd|dump|die|mysql_query|shell_exec|extract|error_log|unserialize": ("php",),
    r"puts|binding\.pry|byebug|pp|instance_eval|class_eval|update_attribute|save!": ("ruby",),
    r"fatalError|NSLog|debugPrint": ("swift",),
}
"""By the name of a call, the languages in which it is meant."""

CONSTRUCTS: tuple[tuple[str, tuple[str, ...], dict[str, object]], ...] = (
    (
        r"`?export default`?|default exports?",
        _WEB,
        {"kind": "export_statement", "regex": r"^export\s+default\b"},
    ),
    (
        (
            r"[`\"']var[`\"']|\bvar (?:declarations?|keyword|statements?|in )|\b(?:use|using|write) var\b"
            r"|\bno"
            r" var\b"
        ),
        _WEB,
        {"kind": "variable_declaration"},
    ),
    (
        (
            r"[`\"']any[`\"']|\bany[- ]types?\b|\btype any\b|(?:use|using|with|as|to) any(?=$| in\b|"
            r" anywhere|"
            r" type| as\b|,)"
        ),
        ("typescript", "tsx"),
        {"kind": "predefined_type", "regex": "^any$"},
    ),
    (
        r"wildcard imports?|star imports?|import \*|`\w*\s?import \*`|`?from \w+ import \*`?",
        ("python",),
        {"kind": "wildcard_import"},
    ),
    (r"wildcard imports?|star imports?", ("java",), {"kind": "import_declaration", "regex": r"\*\s*;?$"}),
    (
        r"bare [`\"']?excepts?\b|[`\"']except:[`\"']|naked excepts?",
        ("python",),
        {"kind": "except_clause", "regex": r"^except\s*:"},
    ),
    (
        r"(?<![=!])==(?![=])(?=.*===)|===.*(?<![=!])==(?!=)|loose (?:equality|comparisons?)|double equals",
        _WEB,
        {"any": [{"pattern": "$A == $B"}, {"pattern": "$A != $B"}]},
    ),
    (r"\bgotos?\b", ("c", "cpp", "go", "php", "csharp"), {"kind": "goto_statement"}),
    (
        r"class components?|class-based components?",
        ("javascript", "tsx"),
        {"kind": "class_declaration", "regex": r"extends\s+(?:React\.)?(?:Pure)?Component\b"},
    ),
    (
        r"inline styles?|style (?:attributes?|props?)|[`\"']style=",
        ("javascript", "tsx"),
        {"kind": "jsx_attribute", "regex": r"^style\b"},
    ),
    (r"non-null assertions?", ("typescript", "tsx"), {"kind": "non_null_expression"}),
    (r"\benums?\b", ("typescript", "tsx"), {"kind": "enum_declaration"}),
    (
        r"[`\"']unsafe[`\"']|\bunsafe (?:blocks?|code|rust)\b|\buse unsafe\b|\bno unsafe\b",
        ("rust",),
        {"kind": "unsafe_block"},
    ),
    (r"[`\"']global[`\"']|\bglobal (?:statements?|keyword)\b", ("python",), {"kind": "global_statement"}),
    (r"\blambdas?\b", ("python",), {"kind": "lambda"}),
    (
        r"nested ternar(?:y|ies)\b",
        _WEB,
        {"kind": "ternary_expression", "has": {"kind": "ternary_expression", "stopBy": "end"}},
    ),
    (r"using namespace(?: std)?", ("cpp",), {"kind": "using_declaration", "regex": "^using namespace"}),
    (
        r"(?:raw|naked|bare) (?:`?new`?|new(?:/| and | or )delete)\b|[`\"']new[`\"']",
        ("cpp",),
        {"any": [{"kind": "new_expression"}, {"kind": "delete_expression"}]},
    ),
    (r"[`\"']?debugger[`\"']? statements?|[`\"']debugger[`\"']", _WEB, {"kind": "debugger_statement"}),
    (r"[`\"']?!![`\"']?(?= operator| in\b|$|,)", ("kotlin",), {"kind": "postfix_expression", "regex": "!!$"}),
    (r"force[- ]unwrap\w*", ("swift",), {"kind": "postfix_expression", "regex": "!$"}),
    (r"\basserts?\b(?: statements?)", ("python",), {"kind": "assert_statement"}),
    (
        r"field injection|@Autowired (?:on )?fields?|@Autowired",
        ("java",),
        {"kind": "field_declaration", "regex": r"@Autowired\b"},
    ),
)
"""Wordings of a construct, the languages in which it is meant, and the rule of ast-grep that finds it."""

EMOJI = "[\U0001f000-\U0001faff\u2600-\u27bf\u2b50\u2b55\u231a\u231b\u23e9-\u23f3\ufe0f]"
CHARACTERS: dict[str, str] = {
    r"\bem[ -]?dash(?:es)?\b": "—",
    r"\ben[ -]dash(?:es)?\b": "–",
    r"\bemojis?\b|\bemoticons?\b": EMOJI,
    r"\btrailing (?:white ?space|spaces|blanks)\b": r"[ \t]+$",
    r"\bcrlf\b|\bwindows line[ -]endings?\b|\bcarriage returns?\b": r"\r$",
    r"\b(?:curly|smart|typographic|fancy) quot(?:es|ation marks)\b": "[“”‘’„‟]",
    r"\bexclamation (?:marks?|points?)\b": "!",
    r"\bsemi-?colons?\b": ";",
    r"\bellips[ei]s (?:character|sign)s?\b": "…",
    r"\bnon[- ]breaking spaces?\b": "\u00a0",
    r"\bnon[- ]ascii\b": r"[^\x00-\x7f]",
    r"\bwindows paths?\b": r"\b[A-Za-z]:\\\\?\w",
    r"\bhtml tags?\b": r"</?[a-z][a-z0-9]*(?:\s[^<>]*)?/?>",
    r"!important\b": "!important",
    r"\bselect \*|\bSELECT \*": r"(?i)\bselect\s+\*",
    r"@ts-ignore\b": "@ts-ignore",
    r"\beslint-disable\b": "eslint-disable",
    r"#? ?noqa\b": r"#\s*noqa",
    r"\btype: ?ignore\b": r"#\s*type:\s*ignore",
    r"\bTODOs?\b": r"\bTODO\b",
    r"\bFIXMEs?\b": r"\bFIXME\b",
    r"\blorem ipsum\b": r"(?i)\blorem ipsum\b",
    r"\bprivate keys?\b": r"-----BEGIN (?:\w+ )*PRIVATE KEY-----",
    r"\baws (?:access )?keys?\b|\baws (?:secrets|credentials)\b": r"\bAKIA[0-9A-Z]{12,}",
    r"(?:indent\w* with |use |contain |no )tabs\b|\btabs (?:must|may|should|are|for indent)|\btab"
    r" characters?\b": r"\t",
}
"""Characters and marks by name, and the regular expression that finds them."""

MANAGERS: dict[str, tuple[str, ...]] = {
    "npm": (
        "npm install",
        "npm i",
        "npm add",
        "npm ci",
        "npm update",
        "npm run",
        "npm test",
        "npm exec",
        "npx",
    ),
    "yarn": ("yarn",),
    "pnpm": ("pnpm",),
    "bun": ("bun",),
    "pip": ("pip install", "pip3 install", "python -m pip install", "python3 -m pip install"),
    "poetry": ("poetry",),
    "uv": ("uv",),
    "pipenv": ("pipenv",),
    "conda": ("conda install", "conda create", "mamba install"),
    "easy_install": ("easy_install",),
    "brew": ("brew install",),
    "apt": ("apt install", "apt-get install"),
    "maven": ("mvn", "./mvnw"),
    "gradle": ("gradle", "./gradlew"),
}
"""Package managers, and the commands by which they change or run a project."""

FAMILIES = (("npm", "yarn", "pnpm", "bun"), ("pip", "poetry", "uv", "pipenv", "conda"), ("maven", "gradle"))
"""Package managers of which one takes the place of another."""

ECOSYSTEMS: dict[str, str] = {
    r"gems?|gemfile|ruby|bundler?": "rubygems",
    r"crates?|cargo(?:\.toml)?|rust": "cargo",
    r"npm|package\.json|node|javascript|typescript|react": "npm",
    r"requirements[\w-]*\.txt|pyproject(?:\.toml)?|python|pypi|pip": "python",
    r"go\.mod|golang|go get|go modules?": "go",
    r"pom\.xml|maven|gradle|java|kotlin": "maven",
    r"composer(?:\.json)?|php": "composer",
    r"nuget|c#|csproj|\.net": "nuget",
    r"docker(?:file)?s?|base images?": "docker",
}
MANIFESTS: dict[str, str] = {
    "rubygems": "**/Gemfile",
    "cargo": "**/Cargo.toml",
    "npm": "**/package.json",
    "go": "**/go.mod",
    "maven": "**/pom.xml",
    "composer": "**/composer.json",
}

STYLES: dict[str, str] = {
    r"snake[_ -]?case": r"_*[a-z][a-z0-9]*(?:_[a-z0-9]+)*_*",
    r"(?:lower )?camel[ -]?case": r"[_$]*[a-z][A-Za-z0-9]*",
    r"pascal[ -]?case|upper camel[ -]?case": r"_*[A-Z][A-Za-z0-9]*",
    r"kebab[ -]?case|dash-?separated|hyphenated": r"[a-z0-9]+(?:-[a-z0-9]+)*",
    r"(?:screaming|upper|constant)[_ -](?:snake[_ -]?)?case|all[ -]caps": r"_*[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*",
}
"""Styles of names, and the regular expression of a whole name."""

DECLARATIONS: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    r"functions?|methods?|hooks?": (
        (("python", "php"), "function_definition"),
        (_WEB, "function_declaration"),
        (_WEB, "method_definition"),
        (("go", "kotlin", "swift"), "function_declaration"),
        (("go",), "method_declaration"),
        (("rust",), "function_item"),
        (("java", "csharp", "php"), "method_declaration"),
        (("ruby",), "method"),
    ),
    r"class(?:es)?|exceptions?|models?|controllers?": (
        (("python",), "class_definition"),
        ((*_WEB, "java", "csharp", "php", "kotlin", "swift"), "class_declaration"),
        (("ruby",), "class"),
    ),
    r"interfaces?": ((("typescript", "tsx", "java", "csharp", "php"), "interface_declaration"),),
    r"structs?": ((("rust",), "struct_item"), (("csharp",), "struct_declaration")),
    r"enums?": ((("typescript", "tsx", "java", "csharp"), "enum_declaration"), (("rust",), "enum_item")),
}
"""By the name of a declaration, languages and the node kind; the field ``name`` has its name."""

PROGRAMS = vocabulary(
    """
    git docker kubectl terraform tofu helm npm npx yarn pnpm bun pip poetry uv cargo go make mvn gradle
    dotnet aws gcloud az ansible ansible-playbook psql mysql redis-cli curl wget rsync scp ssh rm mv cp
    chmod chown sudo systemctl rake rails bundle php composer artisan alembic flask django-admin manage.py
    pytest tox ruff black mypy eslint prettier tsc vite webpack ffmpeg pandoc latexmk rustup rustc gcc
    clang cmake bazel buf protoc prisma supabase vercel fly flyctl heroku firebase gh glab sed dd mkfs
    shutdown kill killall pkill crontab dbt airflow spark-submit jupyter conda nix brew apt apt-get snap
    flutter dart adb xcodebuild pod fastlane swift terragrunt vault consul pulumi serverless sam cdk godot
    unity
    """
)
"""Programs whose name in a rule about a command line means the program."""

OBVIOUS_PROGRAMS = PROGRAMS - vocabulary(
    "go make black fly vault swift flask rake sam buf snap nix unity spark cp"
)
"""Those of them that are no common word."""

MANY_COMMANDS = vocabulary(
    """
    git docker podman kubectl helm terraform tofu npm pnpm yarn bun uv poetry cargo go dotnet gh aws gcloud az
    flutter dart rails composer bundle systemctl brew apt apt-get conda vault fly heroku supabase vercel
    firebase
    cdk sam pulumi buf prisma alembic dbt airflow deno nix rustup pod adb swift mix cabal stack manage.py
    artisan
    """
)
"""Programs whose first argument is a subcommand."""

DEEDS: tuple[tuple[str, dict[str, tuple[str, ...]]], ...] = (
    (
        r"\bforce[- ]?push\w*|\bpush\w* (?:with )?(?:--force|-f)\b|\bforce (?:a )?push",
        {"programs": ("git push",), "forbidden_flags": ("--force", "-f", "--force-with-lease")},
    ),
    (
        (
            r"\b(?:skip|bypass|disable|circumvent|get around|dodge)\w* (?:the |our |any )?(?:git "
            r"|pre-?commit |commit )*hooks?\b"
        ),
        {"programs": ("git commit", "git push"), "forbidden_flags": ("--no-verify",)},
    ),
    (
        r"\bamend(?:ing|ed)?\b(?=.*\bcommit|$| )",
        {"programs": ("git commit",), "forbidden_flags": ("--amend",)},
    ),
    (r"\brebas(?:e[sd]?|ing)\b", {"programs": ("git rebase",)}),
    (
        (
            r"\bpush(?:es|ing|ed)? (?:\w+ ){0,3}?(?:to|on|onto) (?:the )?[`\"']?"
            r"(?P<branch>main|master|production|prod|release|develop|trunk)\b"
        ),
        {"programs": ("git push",)},
    ),
    (r"\b(?:git )?stash(?:ing|es)?\b(?=.*\bgit\b|$|ing)", {"programs": ("git stash",)}),
    (r"\bsudo\b", {"programs": ("sudo",)}),
    (
        r"\brm -rf?\b|\brm -fr\b",
        {"programs": ("rm",), "forbidden_flags": ("-rf", "-fr", "-r", "-R", "--recursive")},
    ),
)
"""Deeds with a name of their own, and the fields of their check."""
